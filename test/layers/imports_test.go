package layers

import (
	"slices"
	"strings"
	"testing"
)

// layers are the folders at the root, the lowest layer first: packages of a folder may import packages of earlier
// lines, and of folders to the left in the same line. docs/design.md draws them.
var layers = []string{
	"fault internal",
	"gguf",
	"quants imatrix tokenizer",
	"rows model",
	"checkpoint",
	"arch",
	"writer",
	"convert eval",
	"quantize",
	"publish",
	"cmd",
	"test",
}

// never are packages that a package must not import, directly or by way of others, although layers permits it.
var never = []struct{ from, to, why string }{
	{"quantize", "convert convert/general arch tokenizer checkpoint", "quantizing needs no architecture"},
	{"eval", "convert convert/general arch checkpoint", "a model that is evaluated may come from any source"},
	{"model", "convert arch tokenizer checkpoint", "a model does not depend on its source"},
	{"rows", "checkpoint/safetensors checkpoint", "a Source does not know what stores it"},
	{"arch", "checkpoint", "tables open no files"},
	{"tokenizer", "checkpoint", "tokenizers read what they are given"},
	{"tokenizer/vocab", "tokenizer checkpoint arch model", "encoding needs metadata only"},
	{"writer", "arch tokenizer convert quantize checkpoint/precision", "the writer knows no models"},
}

// notIn are packages of the standard library, and the packages that must not import them directly: "*" is all, "public"
// is all that other modules can import, NAME/... includes the packages below NAME, -NAME is an exception.
var notIn = []struct{ imported, by, why string }{
	{"os", "arch/... tokenizer/... convert/general publish/naming rows quants gguf model fault checkpoint/precision",
		"the caller opens files"},
	{"log", "*", "libraries log nothing"},
	{"flag", "*", "libraries read no flags"},
	{"unsafe", "public", "unsafe is for internal packages"},
	{"os/exec", "*", "libraries start no programs"},
	{"net/http", "* -internal/io/fetch -internal/io/bucket -internal/io/hub -eval/serve",
		"fetch reads from servers, bucket signs requests and uploads, hub commits, serve is a server"},
}

func TestImports(t *testing.T) {
	all := map[string]*pkg{}
	for _, p := range list(t) {
		all[p.path()] = p
	}
	place, n := map[string]int{}, 0 // in reading order
	for _, line := range layers {
		for folder := range strings.FieldsSeq(line) {
			n++
			place[folder] = n
		}
	}
	found := map[string]bool{}
	for name, p := range all {
		folder, _, _ := strings.Cut(name, "/")
		found[folder] = true
		if place[folder] == 0 {
			t.Errorf("%s: the folder %s is in no layer", name, folder)
			continue
		}
		for _, imported := range ours(p) {
			below, _, _ := strings.Cut(imported, "/")
			switch {
			case all[imported] != nil && all[imported].test() && !p.test():
				t.Errorf("%s imports %s, which is for tests", name, imported)
			case p.test() && folder != "test": // a package that makes data for tests of its own folder
			case place[below] > place[folder]:
				t.Errorf("%s imports %s: %s is above %s", name, imported, below, folder)
			}
		}
	}
	for folder := range place {
		if !found[folder] {
			t.Errorf("%s: no such folder", folder)
		}
	}
	for _, n := range never {
		for _, to := range strings.Fields(n.to) {
			if way := reach(all, n.from, to); way != nil {
				t.Errorf("%s: %s", strings.Join(way, " imports "), n.why)
			}
		}
	}
	for _, n := range notIn {
		for name, p := range all {
			if p.test() || !slices.Contains(p.Imports, n.imported) || slices.Contains(strings.Fields(n.by), "-"+name) {
				continue
			}
			for _, by := range strings.Fields(n.by) {
				folder, below := strings.CutSuffix(by, "/...")
				if by == "*" || by == "public" && p.public() || name == folder ||
					below && strings.HasPrefix(name, folder+"/") {
					t.Errorf("%s imports %s: %s", name, n.imported, n.why)
				}
			}
		}
	}
}

// ours returns the packages of this module that p imports.
func ours(p *pkg) []string {
	var names []string
	for _, name := range p.Imports {
		if short, ok := strings.CutPrefix(name, module); ok {
			names = append(names, short)
		}
	}
	return names
}

// reach returns a chain of imports from one package to another, nil if there is none.
func reach(all map[string]*pkg, from, to string) []string {
	seen := map[string]bool{}
	var walk func(name string) []string
	walk = func(name string) []string {
		if name == to {
			return []string{name}
		}
		p := all[name]
		if p == nil || seen[name] {
			return nil
		}
		seen[name] = true
		for _, imported := range p.Imports {
			if way := walk(strings.TrimPrefix(imported, module)); way != nil {
				return append([]string{name}, way...)
			}
		}
		return nil
	}
	return walk(from)
}
