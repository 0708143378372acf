package writer

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
)

// TestListLeftovers lists and removes leftover files of runs of all kinds, next to files of the user with similar
// names.
func TestListLeftovers(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("breaks")
	fail := func() error { return broken }
	in := func(name string) string {
		sub := filepath.Join(dir, name)
		if err := os.MkdirAll(sub, 0o777); err != nil {
			t.Fatal(err)
		}
		return sub
	}
	for _, c := range []struct {
		dir string
		j   *Journal
	}{{"run", run("same")}, {"parts", part("", 1, 2)}, {"parts", part("", 2, 2)},
		{"own files", part(in("files"), 1, 2)}} {
		if _, _, err := resumable(in(c.dir), 60, fail, Options{Workers: 1, MaxBuffer: 1, Journal: c.j}); !errors.Is(err,
			broken) && err != nil {
			t.Fatal(c.dir, err)
		}
	}
	users := map[string]string{"a.gguf": "gguf", "b.partial": "of a download", "c.partial.rows": "a table",
		"d.part-1-of-2": "a text", "e.partial.run": "x", "f.gguf.partial.blocks": BlocksMagic,
		"f.gguf.partial.norms": NormsMagic, "i.gguf.partial.blocks": "of another program",
		"j.gguf.partial.norms.2": NormsMagic, "k.gguf.partial.norms": "of another program"}
	for _, sub := range []string{"run", "parts", "files"} {
		for name, text := range users {
			if err := os.WriteFile(filepath.Join(dir, sub, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	for sub, want := range map[string]string{
		"run": "unknown b, blocks f.gguf, blocks j.gguf, run f-00001-of-00002.gguf 3, run h-00001-of-00002.gguf 3, run " +
			"s-00001-of-00002.gguf 3",
		"parts": "unknown b, blocks f.gguf, blocks j.gguf, parts f-00001-of-00002.gguf 5, parts h-00001-of-00002.gguf 5, " +
			"parts s-00001-of-00002.gguf 5",
		"files": "unknown b, blocks f.gguf, blocks j.gguf, part f-00001-of-00002.gguf.part-1-of-2 1, part " +
			"h-00001-of-00002.gguf.part-1-of-2 1, part s-00001-of-00002.gguf.part-1-of-2 1",
	} {
		list, err := Leftovers(filepath.Join(dir, sub), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range list {
			text := string(l.Kind) + " " + l.Output
			if l.Kind != LeftUnknown && l.Kind != LeftBlocks {
				text += " " + string(rune('0'+len(l.Files)))
				if l.Kind != LeftPart && l.Blocks == 0 {
					t.Errorf("%s: %s has no blocks", sub, l.Output)
				}
			}
			got = append(got, text)
			if l.Busy || l.Modified.IsZero() {
				t.Errorf("%s: %+v", sub, l)
			}
			if err := l.Remove(); (err != nil) != (l.Kind == LeftUnknown) {
				t.Errorf("%s: %s: %v", sub, l.Output, err)
			}
		}
		slices.Sort(got)
		list2 := strings.Split(want, ", ")
		slices.Sort(list2)
		if !slices.Equal(got, list2) {
			t.Errorf("%s: %q, want %q", sub, got, list2)
		}
		left := contents(t, filepath.Join(dir, sub))
		here := maps.Clone(users)
		for _, name := range []string{"f.gguf.partial.blocks", "f.gguf.partial.norms", "j.gguf.partial.norms.2"} {
			delete(here, name)
		}
		if !maps.Equal(left, here) {
			t.Errorf("%s: left %v", sub, slices.Sorted(maps.Keys(left)))
		}
	}
}

// TestLeftoverBusy checks that files that a process is writing are not removed.
func TestLeftoverBusy(t *testing.T) {
	dir := t.TempDir()
	looked := false
	_, _, err := resumable(dir, 0, func() error {
		if looked {
			return nil
		}
		looked = true
		list, err := Leftovers(dir, nil)
		if err != nil || len(list) != 3 {
			t.Error(list, err)
		}
		for _, l := range list {
			if err := l.Remove(); !l.Busy || !errors.Is(err, fault.Usage) {
				t.Errorf("%+v: %v", l, err)
			}
		}
		return nil
	}, Options{Workers: 1, Journal: &Journal{}})
	if err != nil || !looked {
		t.Error(err)
	}
}

// FuzzLookInto reads arbitrary bytes as journals: each listed file has one ID at most.
func FuzzLookInto(f *testing.F) {
	head := (&set{files: []layout{{path: "o", header: func() []byte { return nil }}}}).head(nil)
	f.Add(append(head, record(0, fileRecord, 5, 0, 0, 0, 0, 0)...))
	f.Add(head)
	f.Add([]byte(journalMagic))
	name := filepath.Join(f.TempDir(), "o.partial.rows")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		j, ours := readJournalInfo(name)
		if len(j.ids) > len(j.files) || !ours && len(j.files) > 0 || j.blocks < 0 || j.blocks > int64(len(data)) {
			t.Errorf("%+v, %v", j, ours)
		}
	})
}
