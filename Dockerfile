# One image for operator, sidecar and command line: Node, its shared libraries, three bundles; no shell, no package manager.
#
#   docker build -t localhost/kilit:dev .
#
# Without a registry the cluster harness gives the stages `base` and `build` as local build contexts
# (tools/cluster/images/image.ts), so that this file is the same for both.
ARG NODE_IMAGE=node:24-bookworm-slim

# /rootfs: what the final image needs besides the bundles.
FROM ${NODE_IMAGE} AS base
RUN set -eu; \
    node="$(readlink -f "$(command -v node)")"; \
    mkdir -p /rootfs/usr/local/bin /rootfs/etc/ssl/certs /rootfs/tmp; chmod 1777 /rootfs/tmp; \
    cp "$node" /rootfs/usr/local/bin/node; \
    for library in $(ldd "$node" | grep -oE '/[^ ()]+'); do \
      mkdir -p "/rootfs$(dirname "$library")"; cp -L "$library" "/rootfs$library"; \
    done; \
    if [ -f /etc/ssl/certs/ca-certificates.crt ]; then cp /etc/ssl/certs/ca-certificates.crt /rootfs/etc/ssl/certs/; fi; \
    printf 'kilit:x:65532:65532::/:/nologin\nnobody:x:65534:65534::/:/nologin\n' > /rootfs/etc/passwd; \
    printf 'kilit:x:65532:\nnobody:x:65534:\n' > /rootfs/etc/group

FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build

FROM scratch
COPY --from=base /rootfs/ /
# Not dist/lib: that is for programs which import kilit.
COPY --from=build /src/dist/*.js /app/
COPY --from=build /src/dist/sql/ /app/sql/
ENV NODE_ENV=production
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/usr/local/bin/node"]
