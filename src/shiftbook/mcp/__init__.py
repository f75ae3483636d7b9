"""Tools from MCP servers: a program on this machine or an address, as tools of an agent.

    box = McpTools(StdioServer("shop", "python", ["shop_server.py"]), repeat={"shop": {"order": "keyed"}})
    agent = Agent(name="keeper", model=model, toolboxes=[box])

Needs `pip install shiftbook[mcp]`; the SDK is loaded when the first server is opened.
"""

from shiftbook.mcp.servers import HttpServer, StdioServer
from shiftbook.mcp.tool import KEY_META, McpTool
from shiftbook.mcp.toolbox import McpTools

__all__ = ["KEY_META", "HttpServer", "McpTool", "McpTools", "StdioServer"]
