// Newarch writes the first version of a new model family: its table and graph in arch/<family>.go and a made-up model
// in test/hftest/spec_<family>.go, after the most similar family that there is. It lists what it could not decide.
//
//	go run ./test/newarch [-name GGUF] [-n] CLASS CONFIG.json [TENSORS]
//
// TENSORS is the checkpoint's model.safetensors.index.json, a safetensors file (its header alone is enough), or a text
// with a name in each line. Without it, the names are those of the most similar family.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "newarch:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	set := flag.NewFlagSet("newarch", flag.ContinueOnError)
	name := set.String("name", "", "general.architecture of the files; model_type of config.json by default")
	dry := set.Bool("n", false, "print the files instead of writing them")
	force := set.Bool("force", false, "replace files that exist")
	without := set.String("without", "", "leave out families, by names or classes separated by commas: for trials")
	set.Usage = func() {
		fmt.Fprintln(set.Output(), "usage: newarch [flags] CLASS CONFIG.json [TENSORS]")
		set.PrintDefaults()
	}
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() < 2 || set.NArg() > 3 {
		set.Usage()
		return errors.New("want CLASS CONFIG.json [TENSORS]")
	}
	opt := options{class: set.Arg(0), name: *name, vocabulary: vocabularyIn(filepath.Dir(set.Arg(1)))}
	if *without != "" {
		opt.without = strings.Split(*without, ",")
	}
	var err error
	if opt.config, err = readFile(set.Arg(1)); err != nil {
		return err
	}
	if opt.tensors, err = readFile(set.Arg(2)); err != nil {
		return err
	}
	if opt.root, err = moduleRoot(); err != nil {
		return err
	}
	r, err := generate(opt)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(r.files)) {
		if *dry {
			fmt.Fprintf(out, "== %s\n%s", path, r.files[path])
			continue
		}
		file := filepath.Join(opt.root, filepath.FromSlash(path))
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) && !*force {
			return fmt.Errorf("%s is there already: -force replaces it", path)
		}
		if err := os.WriteFile(file, []byte(r.files[path]), 0o666); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: new\n", path)
	}
	for _, line := range r.report() {
		fmt.Fprintln(out, line)
	}
	return nil
}

// moduleRoot returns the folder of the module, above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "arch", "arch.go")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("run it in the repository: no arch/arch.go above the working directory")
		}
		dir = parent
	}
}
