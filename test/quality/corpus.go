package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A text evaluates, calibrates or trains models.
type text struct {
	name, what string
	data       []byte
}

func (t *text) sha() string {
	sum := sha256.Sum256(t.data)
	return hex.EncodeToString(sum[:])
}

// corpus is all texts, by name.
type corpus struct {
	texts   map[string]*text
	sources []*language
	version string // of the toolchain whose library it is
}

// bytes of the texts; the training text has no limit
var textBytes = map[string]int{heldOut: 600_000, development: 300_000, calibration: 1_200_000}

// names of texts of gollama, which was trained with all of Go's library
const (
	modulesText = "Go modules-heldout"
	evalText    = "eval.txt"
)

// cut returns all texts, cut from installed sources.
func cut(ctx context.Context, opt *options) (*corpus, error) {
	env := func(argv ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "go", argv...).Output()
		if err != nil {
			return "", fmt.Errorf("go %s: %w", strings.Join(argv, " "), err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	c := &corpus{texts: map[string]*text{}}
	var others [][]byte
	if data, err := os.ReadFile(filepath.Join(opt.shared, "models", evalText)); err == nil {
		c.texts[evalText] = &text{evalText, "Go that gollama was not trained with, for development", data}
		others = append(others, data)
	}
	root, err := env("env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if c.version, err = env("env", "GOVERSION"); err != nil {
		return nil, err
	}
	modules := make([]folder, len(goModules))
	for i, m := range goModules {
		dir, err := env("list", "-m", "-f", "{{.Dir}}", m.path)
		if err != nil {
			return nil, err
		}
		if dir == "" {
			return nil, fmt.Errorf("module %s is not in the cache: go mod download", m.path)
		}
		modules[i] = folder{dir, m.licence}
	}
	c.sources = []*language{goSource(root), pythonSource(opt.root), moduleSource(modules), proseSource(opt.root)}
	for _, l := range c.sources {
		if l.name == prose {
			if _, err := os.Stat(filepath.Join(opt.root, proseFolder)); errors.Is(err, os.ErrNotExist) {
				progress("%s texts: left out: %s is not in the chroot", prose, proseFolder)
				continue
			}
			// it may share lines with code that models are trained with
			for _, t := range c.texts {
				others = append(others, t.data)
			}
		}
		made, err := l.texts(textBytes, others...)
		if err != nil {
			return nil, err
		}
		for u, data := range made {
			if len(data) == 0 {
				continue
			}
			name := l.name + "-" + u
			c.texts[name] = &text{name, l.name, data}
			if u != training {
				others = append(others, data)
			}
		}
	}
	all := map[string][]byte{}
	for name, t := range c.texts {
		all[name] = t.data
	}
	// gollama was trained with the library, and training texts do not evaluate models
	delete(all, modulesText)
	if err := disjoint(all); err != nil {
		return nil, err
	}
	for name := range all {
		if strings.HasSuffix(name, training) {
			delete(all, name)
		}
	}
	all[modulesText] = c.texts[modulesText].data
	return c, disjoint(all)
}

// write writes the texts to a folder.
func (c *corpus) write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for name, t := range c.texts {
		progress("%s: %d bytes, %s", name, len(t.data), t.sha())
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), t.data, 0o666); err != nil {
			return err
		}
	}
	return nil
}
