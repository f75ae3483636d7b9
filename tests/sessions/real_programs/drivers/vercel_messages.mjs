// Vercel AI SDK: two turns of a page, its messages kept with the usage in their metadata.
import { writeFileSync } from "node:fs";
import { createOpenAI } from "@ai-sdk/openai";
import { convertToModelMessages, readUIMessageStream, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [url, out, told] = process.argv.slice(2);
const openai = createOpenAI({ baseURL: url, apiKey: "any" });
const sound = tool({
  description: "The depth at a pier.",
  inputSchema: z.object({ pier: z.string() }),
  execute: async ({ pier }) => `9 m at ${pier}`,
});
const system = "The harbour master answers in one line. ".repeat(200);
const messages = [];
for (const words of ["How deep is it at both piers?", "And now?"]) {
  messages.push({ id: `u${messages.length}`, role: "user", parts: [{ type: "text", text: words }] });
  const result = streamText({
    model: openai.chat("gpt-4.1"),
    system,
    messages: await convertToModelMessages(messages),
    tools: { sound },
    stopWhen: stepCountIs(5),
    maxRetries: 0,
  });
  const stream = result.toUIMessageStream({
    originalMessages: messages,
    generateMessageId: () => `a${messages.length}`,
    messageMetadata: ({ part }) =>
      told && part.type === "finish" ? { totalUsage: part.totalUsage, model: "gpt-4.1" } : undefined,
  });
  let last;
  for await (const message of readUIMessageStream({ stream })) last = message;
  messages.push(last);
}
writeFileSync(`${out}/chat.json`, JSON.stringify({ id: "harbour", messages }));
