// Licences writes THIRD_PARTY.md: the modules that the commands and the library
// are linked with, those that only tests and tools use, and the texts of their licences. It fails on a module without
// a licence that it knows and the list below allows. go generate
// ./test/gen/licences runs it; with -check it compares instead of writing.
package main

//go:generate go run . -o ../../../docs/THIRD_PARTY.md

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// allowed are the licences under which a module may be linked, by the phrases
// that their texts have, lower case and with single blanks.
var allowed = []struct {
	name    string
	phrases []string
	not     string // a phrase that only another licence has
}{
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy"}, ""},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name of"}, ""},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}, "neither the name of"},
	{"Apache-2.0", []string{"apache license, version 2.0"}, ""},
	{"Apache-2.0", []string{"apache license version 2.0"}, ""},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}, ""},
}

// refused are phrases of licences that ask more of those who distribute the program.
var refused = []string{"general public license", "mozilla public license", "server side public license",
	"business source license", "eclipse public license",
	"common development and distribution license", "creative commons", "non-commercial", "noncommercial"}

// module is a module that go.mod requires.
type module struct {
	Path, Version, Dir, Error string
	linked                    bool // into a command or the library, not only into tests and tools
}

func main() {
	out := flag.String("o", "docs/THIRD_PARTY.md", "the `file` to write")
	check := flag.Bool("check", false, "compare the file with what would be written")
	flag.Parse()
	if err := run(*out, *check); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(path string, check bool) error {
	mods, err := modules()
	if err != nil {
		return err
	}
	text, err := render(mods)
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(path, text, 0o666)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(old, text) {
		return fmt.Errorf("%s does not match go.mod; go generate ./test/gen/licences writes it anew", path)
	}
	return nil
}

// modules returns the modules that go.mod requires, in the module cache.
func modules() ([]module, error) {
	cmd := exec.Command("go", "mod", "download", "-json")
	cmd.Stderr = os.Stderr
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go mod download: %w", err)
	}
	var mods []module
	for d := json.NewDecoder(bytes.NewReader(list)); ; {
		var m module
		if err := d.Decode(&m); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		if m.Error != "" || m.Dir == "" {
			return nil, fmt.Errorf("%s %s: %s", m.Path, m.Version, m.Error)
		}
		mods = append(mods, m)
	}
	linked, err := linked()
	if err != nil {
		return nil, err
	}
	for i := range mods {
		mods[i].linked = linked[mods[i].Path]
	}
	slices.SortFunc(mods, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return mods, nil
}

// platforms are the systems that releases are for.
var platforms = []string{"linux", "darwin", "windows"}

// linked returns the modules that the commands and the library's packages, those that are not internal, need on some
// platform.
func linked() (map[string]bool, error) {
	paths := map[string]bool{}
	for _, goos := range platforms {
		cmd := exec.Command("go", "list", "-f", "{{.ImportPath}}", "ggforge/...")
		cmd.Env, cmd.Stderr = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0"), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}
		for _, pkg := range strings.Fields(string(out)) {
			if !strings.Contains(pkg+"/", "/internal/") && !strings.Contains(pkg, "/testdata/") {
				args = append(args, pkg)
			}
		}
		deps := exec.Command("go", args...)
		deps.Env, deps.Stderr = cmd.Env, os.Stderr
		if out, err = deps.Output(); err != nil {
			return nil, fmt.Errorf("go list -deps: %w", err)
		}
		for _, path := range strings.Fields(string(out)) {
			paths[path] = true
		}
	}
	return paths, nil
}

// render returns the text of THIRD_PARTY.md.
func render(mods []module) ([]byte, error) {
	var table, texts, others strings.Builder
	for _, m := range mods {
		files, err := files(m.Dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		var names []string
		fmt.Fprintf(&texts, "\n## %s\n", m.Path)
		for _, f := range files {
			data, err := os.ReadFile(filepath.Join(m.Dir, f))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Path, err)
			}
			found, err := classify(string(data))
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", m.Path, f, err)
			}
			for _, name := range found {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			fmt.Fprintf(&texts, "\n%s:\n\n", f)
			for line := range strings.Lines(strings.TrimSpace(string(data))) {
				line = strings.TrimRight(line, " \t\r\n")
				if line != "" {
					line = "    " + line
				}
				texts.WriteString(line + "\n")
			}
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("%s: no licence that is known: found files %q", m.Path, files)
		}
		to := &table
		if !m.linked {
			to = &others
		}
		fmt.Fprintf(to, "| %s | %s | %s |\n", m.Path, m.Version, strings.Join(names, ", "))
	}
	const head = "| module | version | licence |\n| --- | --- | --- |\n"
	if others.Len() > 0 {
		fmt.Fprintf(&table, "\nOnly tests and tools of this repository use these, which no command has in it:\n\n%s%s",
			head, &others)
	}
	return []byte("# Third-party modules\n\n" +
		"What the commands and the library are linked with; `go generate ./test/gen/licences` writes this file, and " +
		"the gate checks\n" +
		"that every licence is one of its list. Go's runtime and standard library have the licence and the copyright notice of\n" +
		"golang.org/x/sys.\n\n" +
		head + table.String() + texts.String()), nil
}

// files returns the names of the files of a module that hold its licence.
func files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		for _, prefix := range []string{"licen", "copying", "notice"} {
			if strings.HasPrefix(name, prefix) && e.Type().IsRegular() {
				names = append(names, e.Name())
				break
			}
		}
	}
	return names, nil
}

// classify returns the names of the licences in a text, none for a notice.
func classify(text string) ([]string, error) {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, phrase := range refused {
		if strings.Contains(text, phrase) {
			return nil, fmt.Errorf("says %q, which no licence of the list does", phrase)
		}
	}
	var names []string
	for _, l := range allowed {
		fits := l.not == "" || !strings.Contains(text, l.not)
		for _, phrase := range l.phrases {
			fits = fits && strings.Contains(text, phrase)
		}
		if fits && !slices.Contains(names, l.name) {
			names = append(names, l.name)
		}
	}
	return names, nil
}
