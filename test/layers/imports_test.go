package layers

import (
	"slices"
	"strings"
	"testing"
)

// rooms are the packages of the library and the commands from the bottom up: one
// may import packages of the lines above its own. docs/design.md draws them. Those
// with a question mark are in builds with vector kernels only.
var rooms = []struct{ name, packages string }{
	{"nothing of ours below", "fault internal/kernel/cpu internal/io/disk internal/kernel/half cmd/internal/heap internal/text/nearest internal/kernel/fused internal/kernel/lane? internal/kernel/pages internal/kernel/parallel internal/text/pyjson eval/internal/window quants/internal/arith tokenizer/internal/uni"},
	{"nothing of ours below but kinds of errors", "internal/io/part internal/text/size"},
	{"nothing of ours below but these", "publish/submit"},
	{"arithmetic whose bits are defined", "internal/kernel/gemm internal/kernel/torchmath internal/kernel/vecmath"},
	{"files as they are", "internal/io/stamp internal/io/fetch tokenizer/internal/onig"},
	{"files as they are", "internal/io/mmap"},
	{"files as they are", "internal/io/statefile"},
	{"files as they are", "internal/io/bucket"},
	{"bytes: formats without meaning", "gguf eval/logprobs checkpoint/safetensors"},
	{"bytes: limits of a program that reads them", "model/limits"},
	{"bytes: formats without meaning", "model/digest checkpoint/ggml imatrix eval/memory checkpoint/torch"},
	{"algorithm: parts of searches and blocks", "quants/internal/pack quants/internal/search"},
	{"algorithm: parts of searches and blocks", "quants/internal/codebook"},
	{"algorithm: the code that defines the bits", "quants/internal/scalar"},
	{"algorithm: vectors", "quants/internal/avx2? quants/internal/lanes? quants/internal/vec128?"},
	{"algorithm: float32 rows to blocks and back", "quants quants/parts"},
	{"Source: a tensor by rows", "rows"},
	{"checkpoint: what stored tensors make a weight", "checkpoint/precision"},
	{"checkpoint: opens model directories", "checkpoint"},
	{"meaning: tokenizers and cards", "tokenizer/internal/hf"},
	{"meaning: tokenizers and cards", "tokenizer tokenizer/vocab convert/general"},
	{"meaning: names of files", "publish/naming"},
	{"meaning: configuration and shapes", "arch/config arch/shape"},
	{"meaning: what a table is", "arch/table"},
	{"meaning: what several tables have", "arch/parts"},
	{"meaning: the tables of what sees and hears", "arch/encoders"},
	{"meaning: the tables", "arch"},
	{"what is written", "model"},
	{"whether two inputs are the same", "model/identity"},
	{"writing", "writer"},
	{"writing, and what is written", "publish/manifest"},
	{"orchestration", "convert writer/edit convert/export eval publish/compare quantize publish/verify"},
	{"orchestration: what takes several of these", "quantize/calibrate quantize/sensitivity"},
	{"orchestration: what takes several of these", "publish/card cmd/internal/partfile eval/texts quantize/allocate"},
	{"orchestration: outputs of one model, with all that they are chosen by", "quantize/batch"},
	{"orchestration: everything of a published model", "publish/release"},
	{"commands: what they share", "cmd/internal/page"},
	{"commands: what they share", "cmd/internal/cli"},
	{"commands: what some of them share", "cmd/internal/convertflags cmd/internal/outflags cmd/internal/pageflags cmd/internal/quantflags cmd/internal/runflags"},
	{"commands: what a command line asks for", "cmd/internal/convertrun cmd/internal/evalrun cmd/internal/quantrun"},
	{"commands: what a command line asked for is done again", "cmd/internal/reproduce"},
	{"commands", "cmd/ggconv cmd/ggeval cmd/ggquant cmd/ggtool"},
}

// tools make data for tests, measure and generate: only each other, and tests, may
// import them. They may import anything.
var tools = strings.Fields(`imatrix/imatrixtest eval/logprobs/logprobstest checkpoint/safetensors/safetensorstest checkpoint/torch/torchfiletest checkpoint/ggml/ggmltest test/alloctest test/bench test/clitest test/faulttest test/defects test/docs cmd/internal/flagtest test/gen test/gen/archtable test/gen/gemm test/gen/grids
	test/gen/hints test/gen/licences test/hftest test/hftest/mk test/buckettest test/hubtest test/interop test/pairs test/mutate test/quality test/release test/layers test/soak test/toktest test/vocabtest quants/internal/widths?`)

// never are arrows that would point down and are wrong anyway, also by way
// of other packages: a package, those it must not need.
var never = []struct{ from, to, why string }{
	{"quantize", "convert convert/general arch tokenizer checkpoint", "quantizing needs no architecture"},
	{"eval", "convert convert/general arch checkpoint", "a model that is run may come from anywhere"},
	{"model", "convert arch tokenizer checkpoint", "a model does not ask where it comes from"},
	{"rows", "checkpoint/safetensors checkpoint", "a Source does not know what stores it"},
	{"arch", "checkpoint", "tables open no files"},
	{"tokenizer", "checkpoint", "tokenizers read what they are given"},
	{"tokenizer/vocab", "tokenizer checkpoint arch model", "encoding needs metadata only"},
	{"writer", "arch tokenizer convert quantize", "the writer knows no models"},
}

// notIn are packages of the standard library, and what may not import them
// itself. A name that ends in "/..." is for the packages below, too; one after a
// minus may.
var notIn = []struct{ imported, by, why string }{
	{"os", "arch/... tokenizer/... tokenizer/vocab convert/general publish/naming rows quants gguf model fault checkpoint/precision", "the caller opens files"},
	{"log", "*", "libraries log nothing"},
	{"flag", "*", "libraries read no flags"},
	{"unsafe", "public", "unsafe is for internal packages"},
	{"os/exec", "*", "nothing else is run"},
	{"net/http", "* -internal/io/fetch -internal/io/bucket", "one package reads from servers, one more speaks to those that want signatures and take files"},
}

func TestImports(t *testing.T) {
	all := map[string]*pkg{}
	for _, p := range list(t) {
		all[p.path()] = p
	}
	rank := map[string]int{}
	for i, room := range rooms {
		for _, name := range strings.Fields(room.packages) {
			name, optional := strings.CutSuffix(name, "?")
			if rank[name] != 0 {
				t.Errorf("%s: in two rooms", name)
			}
			if all[name] == nil && !optional {
				t.Errorf("%s (%s): no such package", name, room.name)
			}
			rank[name] = i + 1
		}
	}
	tool := map[string]bool{}
	for _, name := range tools {
		name, optional := strings.CutSuffix(name, "?")
		if all[name] == nil && !optional {
			t.Errorf("%s (tools): no such package", name)
		}
		tool[name] = true
	}
	for name, p := range all {
		if rank[name] == 0 && !tool[name] {
			t.Errorf("%s: in no room", name)
			continue
		}
		for _, imported := range ours(p) {
			switch {
			case tool[name]:
			case tool[imported]:
				t.Errorf("%s imports %s, which is for tests", name, imported)
			case rank[imported] == 0: // reported by itself
			case rank[imported] >= rank[name]:
				t.Errorf("%s (%s) imports %s (%s): the arrow does not point down", name, rooms[rank[name]-1].name, imported, rooms[rank[imported]-1].name)
			}
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
			if tool[name] || !slices.Contains(p.Imports, n.imported) || slices.Contains(strings.Fields(n.by), "-"+name) {
				continue
			}
			for _, by := range strings.Fields(n.by) {
				folder, below := strings.CutSuffix(by, "/...")
				if by == "*" || by == "public" && p.public() || name == folder || below && strings.HasPrefix(name, folder+"/") {
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

// reach returns a way from one package to another along imports, nil if there is
// none.
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
