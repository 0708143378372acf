package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/imatrix"
)

// talkative returns a copy of gollama with a chat template.
func talkative(t *testing.T, template string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(dir, os.DirFS(gollama)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(template), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

const talk = "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content + eos_token + '\n' }}{% else %}" +
	"// {{ m.content + '\n' }}{% endif %}{% endfor %}"

// conversations writes conversations of two categories, every third of which has a second answer.
func conversations(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		more := ""
		if i%3 == 0 {
			more = `, {"role": "user", "content": "Once more."}, {"role": "assistant", "content": "return nil, err"}`
		}
		fmt.Fprintf(&b, `{"category": %q, "messages": [{"role": "user", "content": "F%d returns the number of rows."}, `+
			`{"role": "assistant", "content": "func F%d(x []float32) int {\n\treturn len(x) / %d\n}"}%s]}`+"\n",
			[]string{"odd", "even"}[i%2], i, i, i+2, more)
	}
	return textOf(t, b.String())
}

// TestChats checks the figures of conversations: those of categories add up, and compare agrees with perplexity.
func TestChats(t *testing.T) {
	model, chats := talkative(t, talk), conversations(t, 9)
	run := func(args ...string) string {
		t.Helper()
		code, out, _, err := call(append(args, "-f", chats, "--chats", "--progress", "none")...)
		if code != 0 {
			t.Fatalf("%q: %v", args, err)
		}
		return out
	}
	p := result[perplexityResult](t, run("perplexity", model, "--json"))
	all := result[perplexityResult](t, run("perplexity", model, "--json", "--loss", "all", "-t", "3"))
	if p.Conversations != 9 || p.Chunks != 9 || len(p.Running) != 9 || p.Running[8] != p.PPL || p.LossOf != "assistant" ||
		len(p.Categories) != 2 || p.Categories[0].Category != "odd" || p.Categories[0].Conversations != 5 {
		t.Fatalf("%+v", p)
	}
	if all.LossOf != "all" || all.Predicted != all.Tokens-9 || all.Tokens != p.Tokens || p.Predicted >= all.Predicted {
		t.Errorf("%+v, of the assistant %+v", all, p)
	}
	sum, n := 0.0, 0
	for _, c := range p.Categories {
		sum += float64(c.Predicted) * math.Log(float64(c.PPL))
		n += c.Predicted
	}
	if n != p.Predicted || math.Abs(sum/float64(n)-float64(p.Loss)) > 1e-9 {
		t.Errorf("%d tokens of categories with a mean loss of %v, want %d with %v", n, sum/float64(n), p.Predicted, p.Loss)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	c := result[compareResult](t, run("compare", model, "--type", "Q4_0", "--type", "Q8_0", "--json", "--html", page))
	if c.Base.PPL != p.PPL || c.Base.Error != p.Error || len(c.Models) != 2 || c.Models[0].ByPosition != nil ||
		len(c.Models[0].ByChunk) != 9 || len(c.Models[0].Layers) != 7 {
		t.Fatalf("%+v", c)
	}
	for i, m := range c.Models {
		sum := 0.0
		for k, d := range m.Categories {
			if d.Predicted != p.Categories[k].Predicted || !(d.Divergence.Mean > 0 && d.Divergence.Error > 0) ||
				math.Abs(float64(d.Ratio.Mean)*float64(p.Categories[k].PPL)/float64(d.PPL)-1) > 1e-9 {
				t.Errorf("model %d: %+v", i, d)
			}
			sum += float64(d.Predicted) * float64(d.Divergence.Mean)
		}
		if got := sum / float64(p.Predicted); math.Abs(got-float64(m.Divergence.Mean)) > 1e-12 {
			t.Errorf("model %d: categories have a divergence of %v, want %v", i, got, m.Divergence.Mean)
		}
	}
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "<h2>Categories of conversations</h2>") ||
		!strings.Contains(string(html), ">even: ") || strings.Contains(string(html), "by position") {
		t.Errorf("%v, %.3000s", err, html)
	}
	for _, args := range [][]string{{"perplexity", model, "--html", page, "--force"}, {"compare", model, model}} {
		if out := run(args...); !strings.Contains(out, "9 conversations, "+fmt.Sprint(p.Predicted)+
			" tokens predicted: those of the assistant") || !strings.Contains(out, "category  conversations") {
			t.Errorf("%q: %s", args, out)
		}
	}
	// the first 20 tokens of the first two
	few := result[perplexityResult](t, run("perplexity", model, "--json", "-c", "20", "--chunks", "2", "--loss", "all"))
	if few.Conversations != 2 || few.Predicted != 38 {
		t.Errorf("%+v", few)
	}
}

// TestChatsImatrix checks that conversations are the text of their renderings, one after the other, for ggeval imatrix.
func TestChatsImatrix(t *testing.T) {
	model, chats, dir := talkative(t, talk), conversations(t, 9), t.TempDir()
	var b strings.Builder
	for i := range 9 {
		fmt.Fprintf(&b, "<s>// F%d returns the number of rows.\nfunc F%d(x []float32) int {\n\treturn len(x) / %d\n}</s>\n",
			i, i, i+2)
		if i%3 == 0 {
			b.WriteString("// Once more.\nreturn nil, err</s>\n")
		}
	}
	text := filepath.Join(dir, filepath.Base(chats)) // the matrix has its name
	if err := os.WriteFile(text, []byte(strings.TrimPrefix(b.String(), "<s>")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var files [][]byte
	for i, args := range [][]string{{"-f", chats, "--chats"}, {"-f", text, "--parse-special"}} {
		out := filepath.Join(dir, fmt.Sprint(i))
		code, printed, _, err := call(append([]string{"imatrix", model, "-o", out, "-c", "32", "--progress", "none"}, args...)...)
		if code != 0 {
			t.Fatal(err)
		}
		if i == 0 && !strings.Contains(printed, "9 conversations of "+chats) {
			t.Error(printed)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, data)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the matrix of the conversations is not that of their text")
	}
	if m, err := imatrix.Parse("m", files[0]); err != nil || m.Chunks < 8 {
		t.Errorf("%v, %v", m, err)
	}
}

// TestChatsRefused checks conversations and templates that are refused, and flags that do not go with them.
func TestChatsRefused(t *testing.T) {
	chats := conversations(t, 2)
	for _, c := range []struct {
		model string
		args  string
		code  int
		want  string
	}{
		{gollama, "perplexity", 5, gollama + ": has no chat template"},
		{talkative(t, talk), "perplexity --template x", 5, `has no chat template "x", but default`},
		{talkative(t, "{{ messages | length }}"), "perplexity", 5,
			"line 1: chat template \"default\" of "},
		{talkative(t, "a\n{{ raise_exception('no') }}"), "imatrix -o x", 3, "line 1: chat template"},
		{talkative(t, talk+"{% if add_generation_prompt %}<think>{% endif %}"), "compare --type Q8_0", 5,
			`message 2, of the assistant: the conversation does not begin with the text of the messages before it`},
		{gollama, "perplexity --escape", 2, "--chats and --escape"},
		{gollama, "perplexity --part 1/2 --part-files x", 2, "--chats and --part: want one of them"},
		{gollama, "compare --kl-divergence-base x", 2, "--chats and --kl-divergence-base"},
		{gollama, "imatrix -o x --template-arguments 1", 2, "want a JSON object"},
	} {
		args := append(append(strings.Fields(c.args), c.model), "-f", chats, "--chats", "--progress", "none")
		if code, _, _, err := call(args...); code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d with %q", args, code, err, c.code, c.want)
		}
	}
	if code, _, _, err := call("perplexity", gollama, "-f", chats, "--loss", "all"); code != 2 ||
		!strings.Contains(err.Error(), "--loss goes with --chats") {
		t.Errorf("--loss without --chats: %d, %v", code, err)
	}
}
