package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A language is source code or prose under free licences from which texts are cut.
type language struct {
	name    string
	folders []folder
	ext     []string
	skip    []string // parts of the names of files with tables, generated code or tests
	only    string   // the use of all files, "" if their names decide
}

// notices are parts of lines that unrelated files share: licences and build constraints.
var notices = []string{"Copyright", "Use of this source code", "license that can be found", "go:build",
	"License", "SPDX"}

// A folder holds files of a language.
type folder struct {
	path, licence string
}

// goSource returns the standard library of a toolchain, pythonSource that of the chroot
// with some libraries.
func goSource(goroot string) *language {
	return &language{"Go", []folder{{filepath.Join(goroot, "src"), "BSD-3-Clause, the Go authors"}}, []string{".go"},
		[]string{"testdata", "_test", "tables", "zerrors", "zsys", "_gen"}, ""}
}

// goModules are modules that this one needs, with their licences: no model was trained with
// them.
var goModules = []folder{
	{"google.golang.org/protobuf", "BSD-3-Clause, the Go authors"},
	{"github.com/urfave/cli/v3", "MIT, the contributors of urfave/cli"},
	{"go.yaml.in/yaml/v3", "MIT and Apache-2.0, Kirill Simonov and Canonical"},
	{"github.com/stretchr/testify", "MIT, Mat Ryer, Tyler Bunnell and contributors"},
	{"github.com/schollz/progressbar/v3", "MIT, Zack Scholl"},
}

// moduleSource returns the Go code of modules in folders of the module cache, for evaluation only.
func moduleSource(folders []folder) *language {
	return &language{"Go modules", folders, []string{".go"}, []string{"testdata", "_test", "tables", ".pb.go"}, heldOut}
}

func pythonSource(root string) *language {
	lib := filepath.Join(root, "usr/lib")
	return &language{"Python", []folder{
		{lib + "/python3.14", "PSF-2.0, the Python Software Foundation"},
		{lib + "/python3/dist-packages/sympy", "BSD-3-Clause, the SymPy development team"},
		{lib + "/python3/dist-packages/networkx", "BSD-3-Clause, the NetworkX developers"},
		{lib + "/python3/dist-packages/mpmath", "BSD-3-Clause, Fredrik Johansson and contributors"},
		{lib + "/python3/dist-packages/numpy", "BSD-3-Clause, the NumPy developers"},
		{lib + "/python3/dist-packages/torch", "BSD-3-Clause, the PyTorch contributors"},
	}, []string{".py"}, []string{"/test", "encodings/", "pydoc_data", "_sysconfig", "generated", "benchmarks"}, ""}
}

// proseFolder is where packages of manuals are unpacked, in the chroot: they are not installed.
const proseFolder = "srv/prose"

// prose is the name of the language of manuals.
const prose = "English"

// proseSource returns English manuals (testdata/README.md says which), which may be missing in the chroot.
func proseSource(root string) *language {
	share := filepath.Join(root, proseFolder, "usr/share")
	return &language{prose, []folder{
		{share + "/perl/5.42.3/pod", "GPL-1.0-or-later or Artistic-1.0-Perl, Larry Wall and others"},
		{share + "/doc/git-doc", "GPL-2.0, the Git authors"},
		{share + "/vim/vim92/doc", "Vim, Bram Moolenaar and the Vim contributors"},
		{share + "/doc/linux-doc-7.2/html/_sources", "GPL-2.0, the authors of Linux"},
	}, []string{".pod", ".adoc", ".txt"}, []string{"translations"}, ""}
}

// Texts are cut file by file. The name of a file alone decides its use, so that a model is never trained on a file that
// evaluates it.
const (
	heldOut     = "heldout"     // evaluates once, at the end
	development = "development" // evaluates while methods are chosen
	calibration = "calibration" // input of methods; no model was trained with it
	training    = "training"
)

// use returns the use of a file by its name, with slashes and relative to its folder.
func use(name string) string {
	switch sha256.Sum256([]byte(name))[0] % 16 {
	case 0:
		return heldOut
	case 1:
		return development
	case 2:
		return calibration
	}
	return training
}

const (
	fileMin = 2000 // bytes: less is declarations
	fileMax = 100_000
	// fileCut is the number of bytes of one file in a text for evaluation or calibration.
	fileCut = 12_000
	// A line of this many bytes or more is long: no two texts share one.
	longLine = 45
	// A file that shares more long lines than this with an earlier text is left out; a file that shares fewer loses
	// these lines.
	sharedMax = 2
)

// texts returns the text of each use, of at most limit bytes where that is above 0. They
// share no long line with each other, nor with others.
func (l *language) texts(limit map[string]int, others ...[]byte) (map[string][]byte, error) {
	byUse := map[string][]string{}
	for _, f := range l.folders {
		err := filepath.WalkDir(f.path, func(p string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := filepath.ToSlash(p)
			if e.IsDir() && p != f.path && (e.Name() == "dist-packages" || e.Name() == "vendor") {
				return filepath.SkipDir
			}
			if !e.Type().IsRegular() || !slices.Contains(l.ext, path.Ext(name)) ||
				slices.ContainsFunc(l.skip, func(s string) bool { return strings.Contains(name[len(f.path):], s) }) {
				return nil
			}
			if info, err := e.Info(); err != nil || info.Size() < fileMin || info.Size() > fileMax {
				return err
			}
			rel, err := filepath.Rel(f.path, p)
			if err != nil {
				return err
			}
			u := l.only
			if u == "" {
				u = use(filepath.ToSlash(rel))
			}
			byUse[u] = append(byUse[u], p)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	taken := map[string]string{} // long line → the text that has it
	for _, text := range others {
		for _, line := range longLines(text) {
			taken[line] = "others"
		}
	}
	texts := map[string][]byte{}
	for _, u := range []string{heldOut, development, calibration, training} {
		names := byUse[u]
		slices.SortFunc(names, func(a, b string) int { return strings.Compare(scatter(a), scatter(b)) })
		var text bytes.Buffer
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			if u != training && len(data) > fileCut {
				data = data[:fileCut]
			}
			shared := 0
			kept := make([]byte, 0, len(data))
			for line := range bytes.Lines(data) {
				if by, ok := taken[long(line)]; ok && by != u {
					shared++
				} else {
					kept = append(kept, line...)
				}
			}
			if shared > sharedMax {
				continue
			}
			for _, line := range longLines(kept) {
				taken[line] = u
			}
			text.Write(kept)
			text.WriteByte('\n')
			if n := limit[u]; n > 0 && text.Len() >= n {
				text.Truncate(n)
				break
			}
		}
		texts[u] = text.Bytes()
	}
	return texts, nil
}

// scatter returns a sort key that puts names in a fixed pseudo-random order.
func scatter(name string) string {
	sum := sha256.Sum256([]byte("order " + name))
	return hex.EncodeToString(sum[:])
}

// longLines returns the lines of a text that are long enough to identify it, without notices.
func longLines(text []byte) []string {
	var lines []string
	for line := range bytes.Lines(text) {
		if s := long(line); s != "" {
			lines = append(lines, s)
		}
	}
	return lines
}

// long returns a line without the space around it, "" if it is not one of longLines.
func long(line []byte) string {
	s := string(bytes.TrimSpace(line))
	if len(s) < longLine || slices.ContainsFunc(notices, func(n string) bool { return strings.Contains(s, n) }) {
		return ""
	}
	return s
}

// disjoint fails if two texts share a long line.
func disjoint(texts map[string][]byte) error {
	taken := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		for _, line := range longLines(texts[name]) {
			if other, ok := taken[line]; ok && other != name {
				return fmt.Errorf("the texts %q and %q share the line %q", other, name, line)
			}
			taken[line] = name
		}
	}
	return nil
}
