# The four commands and the certificates of servers, nothing else:
#
#   docker build -t ggforge --build-arg VERSION="$(git describe --tags --always)" .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" ggforge ggconv model/ model-f16.gguf
FROM --platform=$BUILDPLATFORM golang:1.27.4-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
ARG TARGETOS=linux
ARG TARGETARCH=amd64
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build VERSION="$VERSION" && mkdir -p /empty/tmp /empty/work && chmod 1777 /empty/tmp /empty/work

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/LICENSE /src/NOTICE /src/THIRD_PARTY.md /usr/share/doc/ggforge/
COPY --from=build /empty/ /
COPY --from=build /src/bin/ /usr/local/bin/
ENV PATH=/usr/local/bin
USER 65534:65534
WORKDIR /work
CMD ["ggconv", "--help"]
