package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// formula fills in packaging/formula.rb.tmpl, the formula for Homebrew, with the archives of macOS and Linux that have
// been built.
func (r *release) formula(platforms []platform, sums map[string]string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.tree, "packaging", "formula.rb.tmpl"))
	if err != nil {
		return nil, err
	}
	t, err := template.New("formula").Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	type archive struct{ Block, URL, Sum string }
	type system struct {
		Block    string
		Archives []archive
	}
	cpus := map[string]string{"amd64": "on_intel", "arm64": "on_arm"}
	var systems []system
	var commands []string
	for _, s := range []struct{ os, block string }{{"darwin", "on_macos"}, {"linux", "on_linux"}} {
		one := system{Block: s.block}
		for _, p := range platforms {
			if p.os != s.os {
				continue
			}
			file := fmt.Sprintf("%s_%s_%s_%s.tar.gz", name, r.version, p.os, p.arch)
			one.Archives = append(one.Archives, archive{cpus[p.arch], fmt.Sprintf("%s/releases/download/v%s/%s", r.home,
				r.version, file), sums[file]})
			commands = p.commands
		}
		if one.Archives != nil {
			systems = append(systems, one)
		}
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{"Home": r.home, "Version": r.version, "Systems": systems,
		"Commands": `"` + strings.Join(commands, `", "`) + `"`})
	return out.Bytes(), err
}
