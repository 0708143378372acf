package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "ggforge/"

// source is a package of the module.
type source struct {
	ImportPath, Dir, Name                       string
	Imports, TestImports, XTestImports          []string
	EmbedFiles, TestEmbedFiles, XTestEmbedFiles []string
	sum, testSum                                []byte   // of its files, and of its tests
	embedSum, testEmbedSum                      []byte   // of embedded files alone
	fuzz                                        []string // fuzz targets
	provides                                    bool     // see sources.provides
	units                                       [3]units // of its files, of tests inside and of tests outside of it
}

// sources has all packages of the module by their import paths.
type sources map[string]*source

func listSources() (sources, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Name,Imports,TestImports,XTestImports,EmbedFiles,TestEmbedFiles,"+
		"XTestEmbedFiles", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all, names := sources{}, map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(source)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if err := p.read(); err != nil {
			return nil, err
		}
		all[p.ImportPath], names[p.ImportPath] = p, p.Name
	}
	for _, p := range all {
		if err := p.parse(names); err != nil {
			return nil, err
		}
	}
	for path, p := range all {
		p.provides = all.provides(path)
	}
	return all, nil
}

// read takes the sums of the package's files, of those for other systems and builds, too.
func (p *source) read() error {
	files, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
	if err != nil {
		return err
	}
	tests := map[string]bool{}
	for _, name := range files {
		tests[name] = strings.HasSuffix(name, "_test.go")
	}
	for i, list := range [][]string{p.EmbedFiles, p.TestEmbedFiles, p.XTestEmbedFiles} {
		for _, name := range list {
			path := filepath.Join(p.Dir, name)
			tests[path] = i > 0 && (tests[path] || !slices.Contains(p.EmbedFiles, name))
		}
	}
	sum, testSum, embedSum, testEmbedSum := sha256.New(), sha256.New(), sha256.New(), sha256.New()
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		h, embedded := sum, embedSum
		if tests[name] {
			h, embedded = testSum, testEmbedSum
		}
		fmt.Fprintf(h, "%s %d\n", strings.TrimPrefix(name, p.Dir), len(data))
		h.Write(data)
		if !strings.HasSuffix(name, ".go") {
			fmt.Fprintf(embedded, "%s %x\n", strings.TrimPrefix(name, p.Dir), sha256.Sum256(data))
		}
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range fuzzTarget.FindAllSubmatch(data, -1) {
				p.fuzz = append(p.fuzz, string(m[1]))
			}
		}
	}
	p.sum, p.testSum = sum.Sum(nil), testSum.Sum(nil)
	p.embedSum, p.testEmbedSum = embedSum.Sum(nil), testEmbedSum.Sum(nil)
	return nil
}

// uses is what a step runs: tests of packages, packages that are only built, and other files.
type uses struct{ tests, built, files []string }

// imports returns packages of the module: those of the lists, of the first with their tests, and all that they import.
func (all sources) imports(tests, built []string) (map[string]bool, error) {
	needed := map[string]bool{}
	var visit func(path string, tests bool) error
	visit = func(path string, tests bool) error {
		p := all[path]
		if p == nil {
			return fmt.Errorf("no package %s", path)
		}
		lists := [][]string{p.Imports}
		if tests {
			lists = append(lists, p.TestImports, p.XTestImports)
		}
		for _, list := range lists {
			for _, name := range list {
				if strings.HasPrefix(name, module) && !needed[name] {
					needed[name] = true
					if err := visit(name, false); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	for i, list := range [][]string{tests, built} {
		for _, path := range list {
			needed[path] = true
			if err := visit(path, i == 0); err != nil {
				return nil, err
			}
		}
	}
	return needed, nil
}

// code returns the SHA-256 of what a step runs and of the packages that it imports, of these without their tests.
func (all sources) code(u uses) (string, error) {
	needed, err := all.imports(u.tests, u.built)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(needed)) {
		fmt.Fprintf(h, "%s %x\n", path, all[path].sum)
		if slices.Contains(u.tests, path) {
			fmt.Fprintf(h, "tests %x\n", all[path].testSum)
		}
	}
	return hexSum(h, u.files)
}

// hexSum returns the first bytes of the sum of what was written to h, of the versions of other modules, and of more files.
func hexSum(h hash.Hash, files []string) (string, error) {
	for _, name := range append([]string{"go.mod", "go.sum"}, files...) {
		data, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(data))
	}
	return hex.EncodeToString(h.Sum(nil)[:12]), nil
}
