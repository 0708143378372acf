package layers

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// noLimits are constants with the name of a limit that bound no input, but what is computed, printed or requested
// from a server.
var noLimits = strings.Fields(`fault.MaxListed eval.maxDistance eval.MaxInt16 arch.maxNearest convert/general.maxNamed publish/card.maxList publish/card.maxText cmd/ggtool.maxRows internal/io/bucket.maxIncomplete internal/io/bucket.maxParts internal/io/bucket.maxObject internal/io/hub.maxWait internal/io/hub.maxTries internal/io/hub.maxModes internal/io/hub.MaxObjects internal/io/hub.MaxFiles internal/io/hub.MaxContent cmd/internal/cli.maxPiece
	cmd/internal/cli.maxLine internal/io/fetch.maxMemory internal/io/fetch.maxFailures internal/io/fetch.maxPause internal/io/fetch.maxLog internal/kernel/lane.MaxWidth internal/io/mmap.maxOpen internal/text/nearest.maxCompared internal/text/nearest.maxMeant
	internal/text/pyjson.maxQuoted eval/memory.maxGraphLayers eval/memory.maxBatch eval/memory.maxContext eval/memory.maxSequences imatrix.maxLoaded publish/naming.maxBase publish/naming.maxSize publish/naming.maxFineTune publish/naming.maxVersion publish/naming.maxEncoding quantize/allocate.maxStates quants/internal/codebook.MaxGroups
	quants/internal/lanes.maxLanes quants/internal/lanes.maxCandidates quants/internal/lanes.maxChunks quants/internal/lanes.maxRuns quants/internal/lanes.maxSub quants/internal/search.MaxLen publish/submit.maxName writer.maxOpen`)

// also are limits with other names.
var also = []string{"tokenizer/internal/hf.LoadWork"}

var limitName = regexp.MustCompile(`^[mM]ax[A-Z]`)

// TestLimits compares the table of docs/limits.md with the constants of the code.
func TestLimits(t *testing.T) {
	exprs := map[string]ast.Expr{}
	tests := map[string]bool{"test": true}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		pkg := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(filepath.ToSlash(path), "../../")))
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() != ".." && strings.HasPrefix(d.Name(), ".") ||
			tests[strings.TrimPrefix(filepath.ToSlash(path), "../../")]):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			g, ok := decl.(*ast.GenDecl)
			if ok && (g.Tok == token.CONST || g.Tok == token.VAR) { // a variable if a test changes the limit
				for _, s := range g.Specs {
					for i, name := range s.(*ast.ValueSpec).Names {
						if v := s.(*ast.ValueSpec).Values; i < len(v) {
							exprs[pkg+"."+name.Name] = v[i]
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	text, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(cell)
		}
		name := strings.Trim(cells[1], "`")
		if _, twice := rows[name]; twice {
			t.Errorf("%s has two rows", name)
		}
		rows[name] = cells[2]
		e, ok := exprs[name]
		if !ok {
			t.Errorf("%s is in the table, and not in the code", name)
			continue
		}
		if got, want := bytesOf(cells[2]), value(exprs, name[:strings.LastIndexByte(name, '.')],
			e); !constant.Compare(got, token.EQL, want) {
			t.Errorf("%s is %v, and %s in the table", name, want, cells[2])
		}
		if kind := cells[5]; !slices.Contains([]string{"broken", "unsupported", "refused", "usage", "cut", "counted",
			"passed over", "left out", "begun again", "the rest is not read"}, kind) {
			t.Errorf("%s: above it files are %q", name, kind)
		}
	}
	for name := range exprs {
		_, row := rows[name]
		limit := limitName.MatchString(name[strings.LastIndexByte(name, '.')+1:]) && !slices.Contains(noLimits, name) ||
			slices.Contains(also, name)
		if limit && !row {
			t.Errorf("%s has no row in docs/limits.md; if it bounds no input, name it in noLimits", name)
		}
	}
	for _, name := range noLimits {
		if _, ok := exprs[name]; !ok || rows[name] != "" {
			t.Errorf("%s: no constant, or one with a row", name)
		}
	}
}

// bytesOf returns the number of a cell.
func bytesOf(cell string) constant.Value {
	number, unit, _ := strings.Cut(cell, " ")
	shift, ok := map[string]uint{"": 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]
	v := constant.MakeFromLiteral(number, token.INT, 0)
	if !ok || v.Kind() != constant.Int {
		return constant.MakeInt64(-1)
	}
	return constant.Shift(v, token.SHL, shift)
}

// value returns the value of a constant expression in a package of ours.
func value(exprs map[string]ast.Expr, pkg string, e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return value(exprs, pkg, e.X)
	case *ast.Ident:
		return value(exprs, pkg, exprs[pkg+"."+e.Name])
	case *ast.SelectorExpr:
		from := e.X.(*ast.Ident).Name
		if from == "math" && e.Sel.Name == "MaxUint16" {
			return constant.MakeInt64(1<<16 - 1)
		}
		for name, e2 := range exprs {
			if at := strings.LastIndexByte(name, '.'); name[at+1:] == e.Sel.Name && filepath.Base(name[:at]) == from {
				return value(exprs, name[:at], e2)
			}
		}
	case *ast.BinaryExpr:
		x, y := value(exprs, pkg, e.X), value(exprs, pkg, e.Y)
		if n, ok := constant.Uint64Val(y); ok && e.Op == token.SHL {
			return constant.Shift(x, e.Op, uint(n))
		}
		return constant.BinaryOp(x, e.Op, y)
	}
	return constant.MakeUnknown()
}
