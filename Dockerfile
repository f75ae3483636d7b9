# Shiftbook as it is in this checkout, for docker-compose.yml: a worker that imports agents from /agents.
FROM python:3.13-slim
# `all` has every vendor's SDK; a narrower list, such as workers,anthropic, makes a smaller image.
ARG EXTRAS=all
WORKDIR /shiftbook
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]"
WORKDIR /agents
USER nobody
ENTRYPOINT ["shiftbook"]
CMD ["worker"]
