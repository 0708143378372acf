package arch

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// lacking are the classes of the reference that are not converted here, by kind.
var lacking = map[string]string{
	"text": `
`,
	"mmproj": `
`,
}

// TestReferenceClasses checks that every class of the reference is converted, except the listed ones, and that these
// are not.
func TestReferenceClasses(t *testing.T) {
	data, err := os.ReadFile("testdata/reference-classes.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{"text": Classes(), "mmproj": EncoderClasses()}
	reference := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		kind, class, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || kind != "text" && kind != "mmproj" {
			t.Fatalf("line %q, want text or mmproj and a class", line)
		}
		reference[kind] = append(reference[kind], class)
	}
	if n, encoders := len(reference["text"]), len(reference["mmproj"]); n != 286 || encoders != 75 {
		t.Errorf("%d classes of language models and %d of encoders, want 286 and 75", n, encoders)
	}
	for kind, classes := range reference {
		lacks := strings.Fields(lacking[kind])
		for _, class := range classes {
			_, other := classHints[class]
			switch is, exempt := slices.Contains(known[kind], class), slices.Contains(lacks, class); {
			case kind == "text" && other:
				if _, err := Lookup(class); err == nil || !strings.Contains(err.Error(), classHints[class]) ||
					is || exempt {
					t.Errorf("%s: %v, want an error that names what to convert instead", class, err)
				}
			case !is && !exempt:
				t.Errorf("%s: class %s of the reference is not converted", kind, class)
			case is && exempt:
				t.Errorf("%s: class %s is converted; take it out of the list of those that are not", kind, class)
			}
		}
		for _, class := range lacks {
			if !slices.Contains(classes, class) {
				t.Errorf("%s: the reference has no class %s", kind, class)
			}
		}
	}
}
