package layers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// words are words of our own for things that have a name in the field: a pattern, the word to use, and a text that the
// pattern finds. docs/glossary.md has our own words that stay.
var words = []struct{ pattern, use, example string }{
	{`(?i)\bheed(s|ed|ing)?\b`, "attend, attention", "layers that heed a window"},
	{`\b(?i:lent|lends?|lending|lender)\b`, "shared KV, borrowed", "keys lent by an earlier layer"},
	{`\b(May|No|Axes|Un)?Turn(ed|s|Key|Halves|Pairs)?\b|Unturned\b|\b(are|is|be|were|was) turned (by|in|with|before|after|first|as)\b`,
		"rotated, RoPE", "keys are turned by position"},
	{`\bTemper\b|\btemper(s|ed)\b`, "attention temperature", "Temper func"},
	{`(?i)\b(sees?|hears?|seeing|hearing) (or|and) (sees?|hears?|seeing|hearing)\b|\bpictures or sound\b`,
		"vision or audio encoder",
		"what a model sees or hears"},
	{`(?i)\bwhat (is|was|are|were) said\b|\bwhat it says\b|\bsays? (that|what|how|whether|where|which)\b`,
		"the fact itself: comments state it, messages name it", "the row says that a tensor is there"},
	{`\b(is|are|was|were) of (another|the other|no|none|this one|that)\b`, "belongs to, was made from, has",
		"a file that is of another model"},
	{`(?i)\bsurprises?\b`, "negative log-likelihood, loss", "surprise of a token"},
	{`(?i)\bstrangers?('s|s')?\b`, "untrusted", "a stranger's file"},
	{`\bDescend(er)?\b`, "CoordinateDescent", "a Descender"},
	{`\bwhat (meets|met) (it|them)\b|\bwhat (a )?layers? reads?\b`, "inputs (activations) of a linear layer",
		"what layers read"},
	{`\b(?i:types|bits) by worth\b|\bworth\.[A-Z]`, "bit allocation, package allocate", "types by worth"},
	{`(?i)\bleft behind\b|\bwhat (a run|runs|it|they|an? [a-z]+ run) (has|have|had) left\b`,
		"leftover (temporary) files, state", "files left behind"},
	{`(?i)\bcomes? and goes?\b|\bwhat (it|they) (is|was|were|are) made of\b|\bbegins? as\b`,
		"the fact: recreated, made from, bad magic",
		"a server that comes and goes"},
	{`(?i)\bgo(es)? on from\b|\bwhat was begun\b`, "resumes", "a run that goes on from there"},
	{`\bAsItStands\b|\bTenthMultiplier\b|\bHalfFeed\b|\bOutScale\b|\bWeigh\b`, "the words of the field", "AsItStands"},
}

// aside are files that have these words for a reason.
var aside = map[string]string{
	"docs/glossary.md":          "explains words",
	"test/layers/words_test.go": "has the patterns",
	"docs/THIRD_PARTY.md":       "is the text of others",
	"docs/quality.md":           "its methods are names that RUN=PATTERN takes",
	"test/quality/":             "its methods are names that RUN=PATTERN takes",
	"publish/card/":             "the text of cards is output",
}

// TestWords refuses words of our own for things that have a name in the field.
func TestWords(t *testing.T) {
	type rule struct {
		*regexp.Regexp
		use  string
		hits int
	}
	var rules []*rule
	for _, w := range words {
		r := &rule{Regexp: regexp.MustCompile(w.pattern), use: w.use}
		if !r.MatchString(w.example) {
			t.Errorf("%s does not find %q", w.pattern, w.example)
		}
		rules = append(rules, r)
	}
	list := exec.Command("git", "ls-files", "--", "*.go", "*.md", "*.sh", "*.py", "*.yml", "*.yaml", "Makefile", ".ci")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skip("no git checkout: ", err)
	}
	files := strings.Fields(string(out))
	if len(files) < 1000 {
		t.Fatalf("%d files", len(files))
	}
	for _, name := range files {
		folder, _ := filepath.Split(name)
		if aside[name] != "" || aside[folder] != "" || strings.Contains(name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, r := range rules {
				if found := r.FindString(line); found != "" {
					if r.hits++; r.hits <= 10 {
						t.Errorf("%s:%d: %q: use %s", name, i+1, found, r.use)
					}
				}
			}
		}
	}
	for _, r := range rules {
		if r.hits > 10 {
			t.Errorf("%d lines with %s", r.hits, r)
		}
	}
}
