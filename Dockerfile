# One image for gateways and workers: `docker run IMAGE gateway`, `docker run IMAGE worker`.
#
# Assumes: a glibc image (onnxruntime has no build for Alpine's musl), a Redis elsewhere (REDIS_URL), and a
# writable /cache for fetched and built models. CPU only: CUDA needs an image with its libraries.
FROM node:20-bookworm-slim AS build
WORKDIR /app
# Without it, onnxruntime-node would download CUDA's libraries where install scripts are allowed.
ENV ONNXRUNTIME_NODE_INSTALL=skip
COPY . .
RUN npm ci && npx tsc -b apps/cli \
  && npm prune --omit=dev && find apps packages -name '*.test.js' -delete

FROM node:20-bookworm-slim
WORKDIR /app
ENV NODE_ENV=production MILLRACE_CACHE_DIR=/cache
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/packages packages
COPY --from=build /app/apps apps
COPY --from=build /app/models models
RUN mkdir /cache && chown node:node /cache
USER node
# node itself is process 1 and handles SIGTERM: no shell or npm stands between.
ENTRYPOINT ["node", "apps/cli/dist/main.js"]
CMD ["--help"]
