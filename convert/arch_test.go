package convert_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/convert"
	"ggforge/test/hftest"
	"ggforge/writer"
)

// golden makes TestArchitectures write the goldens of specs without a reference.
var golden = flag.Bool("golden", false, "write testdata/arch/NAME.txt for the specs that the reference cannot convert")

// TestArchitectures converts made-up checkpoints of every architecture: each file
// must be the reference's to the byte. The goldens are written by make golden;
// where the reference writes none, they are ours and only show that nothing has changed.
func TestArchitectures(t *testing.T) {
	covered := map[*table.Arch]bool{}
	for i, s := range slices.Concat(hftest.Specs(), hftest.Encoders()) {
		lookup := arch.Lookup
		if s.Encoder {
			lookup = arch.LookupEncoder
		}
		a, err := lookup(s.Class())
		if err != nil {
			continue // the spec has no table yet
		}
		covered[a] = true
		if testing.Short() && i%4 != 0 {
			continue // for the race detector, some of the similar specs are enough
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			var got hftest.Golden
			for _, v := range s.All() {
				if err := got.Add(v, convertVariant(t, s, v)); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join("testdata", "arch", s.Name+".txt")
			if *golden && s.NoReference != "" {
				if err := os.WriteFile(path, []byte(got.String()), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("differs from %s:\n%s", path, differences(got.String(), string(want)))
			}
		})
	}
	for _, class := range arch.Classes() {
		if a, err := arch.Lookup(class); err != nil || !covered[a] {
			t.Errorf("%s: no spec of its table in test/hftest (%v)", class, err)
		}
	}
	for _, class := range arch.EncoderClasses() {
		if a, err := arch.LookupEncoder(class); err != nil || !covered[a] {
			t.Errorf("%s: no spec of its vision or audio encoder in test/hftest (%v)", class, err)
		}
	}
}

// convertVariant makes a checkpoint, converts it and returns the file's path.
func convertVariant(t *testing.T, s *hftest.Spec, v hftest.Variant) string {
	t.Helper()
	dir, err := s.Write(filepath.Join(t.TempDir(), v.Name), v)
	if err != nil {
		t.Fatal(err)
	}
	typ, err := convert.ParseOutType(v.Out)
	if err != nil {
		t.Fatal(err)
	}
	opt := optionsOf(t, s.Arguments(dir, v))
	opt.Type, opt.Pre, opt.Reference, opt.Base = typ, s.PreTokenizer(), true, s.BaseDir(dir)
	job, err := convert.Prepare(t.Context(), dir, opt)
	if err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	defer job.Close()
	path := filepath.Join(dir, "out.gguf")
	if _, err := job.Write(context.Background(), path, writer.Options{}); err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	return path
}

// optionsOf returns the options for the flags of a spec.
func optionsOf(t *testing.T, flags []string) (opt convert.Options) {
	t.Helper()
	for i := 0; i < len(flags); i++ {
		switch flags[i] {
		case "--target-model-dir":
			i++
			opt.Target = flags[i]
		case "--mmproj":
			opt.MMProj = true
		case "--mtp":
			opt.NextN = config.OnlyNextN
		case "--no-nextn", "--no-mtp":
			opt.NextN = config.NoNextN
		case "--dspark":
			opt.DSpark = true
		case "--fp8-as-q8":
			opt.Float8AsQ8 = true
		case "--fuse-qkv":
			opt.FuseQKV = true
		case "--fuse-gate-up-exps":
			opt.FuseGateUp = true
		default:
			t.Fatalf("flag %q of a spec: optionsOf does not have it", flags[i])
		}
	}
	return opt
}

// differences lists lines of one text that the other does not have; the goldens
// begin a variant with "= ".
func differences(got, want string) string {
	count := func(text string) map[string]int {
		n, variant := map[string]int{}, ""
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "= ") {
				variant, _, _ = strings.Cut(line[2:], " ")
			}
			n[variant+": "+line]++
		}
		return n
	}
	g, w := count(got), count(want)
	var b strings.Builder
	lines := 0
	list := func(sign, text string, other map[string]int) {
		variant := ""
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "= ") {
				variant, _, _ = strings.Cut(line[2:], " ")
			}
			if other[variant+": "+line] == 0 {
				if lines++; lines <= 60 {
					b.WriteString(sign + variant + ": " + line)
				}
			}
		}
	}
	list("want ", want, g)
	list("got  ", got, w)
	if lines == 0 {
		return "the same lines in another order"
	}
	return b.String()
}
