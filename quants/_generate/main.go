// Command generate writes the unrolled kernels of quants/internal/lanes from the templates in this folder: NAME.go.tmpl
// becomes NAME.go. Kernels are unrolled, and written once for each dimension of a codebook or width of a vector,
// because the compiler keeps no array of vectors in registers and makes a constant index an immediate operand.
//
// Templates are Go code with the actions of text/template. {{range $k := 8}} repeats for $k from 0 to 7; the functions
// below make lists and constants.
package main

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed *.tmpl
var templates embed.FS

var functions = template.FuncMap{
	"list": func(values ...any) []any { return values },
	"add":  func(a, b int) int { return a + b },
	"sub":  func(a, b int) int { return a - b },
	"mul":  func(a, b int) int { return a * b },
	"div":  func(a, b int) int { return a / b },
	"avx2": func() instructions { return instructions{"AVX2", 8, "AsInt32x8()", "AsFloat32x8()"} },
	"neon": func() instructions {
		return instructions{"Neon", 4, "ToBits().BitsToInt32()", "ToBits().BitsToFloat32()"}
	},
}

// instructions are those of a machine, for kernels that several have: the suffix of the kernels' names, the number of
// float32 in a vector, and the methods that take its bits for int32 and back.
type instructions struct {
	Name       string
	Lanes      int
	Int, Float string
}

func main() {
	if err := generate("../internal/lanes"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// generate executes all templates into dir.
func generate(dir string) error {
	all, err := template.New("").Funcs(functions).ParseFS(templates, "*.tmpl")
	if err != nil {
		return err
	}
	for _, t := range all.Templates() {
		name, ok := strings.CutSuffix(t.Name(), ".go.tmpl")
		if !ok {
			continue // of another template
		}
		var b bytes.Buffer
		if err := t.Execute(&b, nil); err != nil {
			return err
		}
		text, err := format.Source(b.Bytes())
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name(), err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".go"), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}
