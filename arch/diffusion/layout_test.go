package diffusion

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
)

// namesOf returns all names of a layout that is converted; the first two blocks have the rows of Some.
func namesOf(l *Layout, blocks int) (names []string) {
	for i := range l.Rows {
		r := &l.Rows[i]
		for e := range r.ends() {
			for p := range r.From {
				if stackOf(r.Name) == "" {
					names = append(names, r.named(r.From[p], tensor{i, e, -1}))
					continue
				}
				for b := range blocks {
					if r.In.has(b, blocks-1) && (r.In != Some || b < 2) {
						names = append(names, r.named(r.From[p], tensor{i, e, b}))
					}
				}
			}
		}
	}
	return names
}

// TestLayouts checks the table: each layout is found by its names and no other one by them, and the original names are
// those of its architecture.
func TestLayouts(t *testing.T) {
	for i := range layouts {
		l := &layouts[i]
		if ByName(l.Arch) == nil || len(l.Classes) == 0 || len(l.Marks) < 2 || (l.Refused == "") != (len(l.Rows) > 0) {
			t.Errorf("%s %v", l.Arch, l.Classes)
		}
		names := namesOf(l, 28) // LTX-Video is known by the block 27
		if l.Refused != "" {
			names = l.Marks
		}
		if got := DetectLayout(names); got != l {
			t.Fatalf("%v: found as %v", l.Classes, got)
		}
		for k := range layouts {
			other := &layouts[k]
			has := func(n string) bool { return slices.Contains(names, n) }
			if other != l && !slices.ContainsFunc(other.Marks, func(n string) bool { return !has(n) }) {
				t.Errorf("%v has the marks of %v", l.Classes, other.Classes)
			}
		}
		if l.Refused != "" {
			continue
		}
		list, err := l.Originals(names)
		if err != nil {
			t.Fatalf("%v: %v", l.Classes, err)
		}
		var originals []string
		parts := 0
		for _, o := range list {
			originals = append(originals, o.Name)
			parts += len(o.From)
			if strings.Contains(o.Name, blockNumber) || slices.Contains(o.From, "") {
				t.Errorf("%v: %+v", l.Classes, o)
			}
		}
		if parts != len(names) || !slices.IsSorted(originals) || len(slices.Compact(slices.Clone(originals))) != len(originals) {
			t.Errorf("%v: %d parts of %d names", l.Classes, parts, len(names))
		}
		if m, err := Detect(originals); err != nil || m.Name != l.Arch {
			t.Errorf("%v: %v, %v", l.Classes, m, err)
		}
		if got := DetectLayout(originals); got != nil {
			t.Errorf("the original of %v is found as %v", l.Classes, got.Classes)
		}
	}
	for _, m := range All() {
		for _, set := range slices.Concat(m.Sets, m.More) {
			if l := DetectLayout(set); l != nil {
				t.Errorf("%v: %v", set, l.Classes)
			}
		}
	}
}

// TestOriginalsMissing leaves out every tensor in turn, which is an error that names it: but for biases that no other
// block has, and groups of one row.
func TestOriginalsMissing(t *testing.T) {
	for i := range layouts {
		l := &layouts[i]
		free := 0
		all := namesOf(l, 3)
		for k, name := range all {
			_, err := l.Originals(slices.Delete(slices.Clone(all), k, k+1))
			var row *Row
			for r := range l.Rows {
				if pattern, _, _ := numbered(name); slices.ContainsFunc(l.Rows[r].From, func(from string) bool {
					from = strings.TrimSuffix(from, anyEnd)
					return strings.HasPrefix(name, from) || strings.HasPrefix(pattern, from)
				}) {
					row = &l.Rows[r]
					break
				}
			}
			alone := len(row.From) == 1 && (strings.HasSuffix(name, ".bias") && stackOf(row.Name) == "" || row.Group == "last image")
			switch {
			case alone:
				free++
				if err != nil {
					t.Errorf("%v without %q: %v", l.Classes, name, err)
				}
			case !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), fmt.Sprintf("%q is missing", name)):
				t.Errorf("%v without %q: %v", l.Classes, name, err)
			}
		}
		if n := len(all); free > n/8 {
			t.Errorf("%v: %d of %d names may be missing", l.Classes, free, n)
		}
	}
}

// TestOriginals has names of other kinds.
func TestOriginals(t *testing.T) {
	flux, sd3 := &layouts[0], &layouts[3]
	without := func(l *Layout, part string) []string {
		return slices.DeleteFunc(namesOf(l, 28), func(n string) bool { return strings.Contains(n, part) })
	}
	for _, c := range []struct {
		l     *Layout
		names []string
		kind  error
		part  string
	}{
		{flux, without(flux, "guidance"), nil, ""},
		{flux, without(flux, ".bias"), nil, ""},
		{sd3, without(sd3, "norm_"), fault.Broken, `"norm_out.linear.weight" is missing`},
		{sd3, without(sd3, "attn2"), nil, ""},
		{flux, append(namesOf(flux, 28), "transformer_blocks.0.attn.to_x.weight"), fault.Unsupported, "to_x.weight"},
		{flux, append(namesOf(flux, 28), "transformer_blocks.01.attn.to_q.weight"), fault.Unsupported, ".01."},
		{flux, append(namesOf(flux, 28), "transformer_blocks.-1.attn.to_q.weight"), fault.Unsupported, ".-1."},
		{flux, append(namesOf(flux, 28), "transformer_blocks.99999999999.attn.to_q.weight"), fault.Unsupported, "99999999999"},
		{flux, append(namesOf(flux, 28), "transformer_blocks.40.attn.to_q.weight"), fault.Broken,
			`"transformer_blocks.40.attn.to_k.weight" is missing, for "double_blocks.40.img_attn.qkv.weight": of its parts ` +
				`only "transformer_blocks.40.attn.to_q.weight" are there`},
		{flux, append(namesOf(flux, 28), "transformer_blocks.28.norm1.linear.weight"), fault.Broken, "transformer_blocks.28."},
		{sd3, append(namesOf(sd3, 28), "transformer_blocks.27.ff_context.net.2.weight"), fault.Unsupported, "27.ff_context"},
		{flux, without(flux, "single_"), fault.Broken, "single_transformer_blocks.0."},
		{flux, nil, fault.Broken, "x_embedder.weight"},
	} {
		_, err := c.l.Originals(c.names)
		if !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.part) {
			t.Errorf("%v, %q: %v", c.l.Classes, c.part, err)
		}
	}
}
