module ggforge

go 1.26

toolchain go1.27.4

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/rivo/uniseg v0.4.7
	github.com/schollz/progressbar/v3 v3.19.0
	github.com/urfave/cli/v3 v3.14.0
	github.com/x448/float16 v0.8.4
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/sync v0.22.0
	golang.org/x/sys v0.29.0
	golang.org/x/term v0.28.0
	golang.org/x/text v0.24.0
	google.golang.org/protobuf v1.36.12
)

require github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
