package texts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer/vocab"
)

// spoken returns the metadata of a model whose tokens are characters and control tokens, with a chat template.
func spoken(template string, addBOS bool) gguf.Metadata {
	tokens := []string{"<unk>", "<s>", "</s>", "<a>", "▁", "\n", "ab", "!\n"}
	types := []int32{2, 3, 3, 3, 1, 1, 1, 1}
	scores := []float32{0, 0, 0, 0, -1, -1, 1, 2}
	for c := 'a'; c < 'h'; c++ {
		tokens, types, scores = append(tokens, string(c)), append(types, 1), append(scores, -1)
	}
	tokens, types, scores = append(tokens, "!"), append(types, 1), append(scores, -1)
	return gguf.Metadata{
		{Key: "tokenizer.ggml.model", Value: gguf.String("llama")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings(tokens)},
		{Key: "tokenizer.ggml.scores", Value: gguf.Float32s(scores)},
		{Key: "tokenizer.ggml.token_type", Value: gguf.Int32s(types)},
		{Key: "tokenizer.ggml.bos_token_id", Value: gguf.Uint32(1)},
		{Key: "tokenizer.ggml.eos_token_id", Value: gguf.Uint32(2)},
		{Key: "tokenizer.ggml.add_bos_token", Value: gguf.Bool(addBOS)},
		{Key: "tokenizer.ggml.add_space_prefix", Value: gguf.Bool(false)},
		{Key: "tokenizer.chat_template", Value: gguf.String(template)},
	}
}

// TestSequences checks tokens of conversations, and which of them are predicted.
func TestSequences(t *testing.T) {
	const turn = "{% for m in messages %}{% if m.role == 'assistant' %}<a>{{ m.content }}</s>\n\n{% else %}{{ m.content }}\n{% endif %}" +
		"{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
	const chat = `{"category": "x", "messages": [{"role": "user", "content": "c"}, {"role": "assistant", "content": "ab"}, ` +
		`{"role": "user", "content": "d"}, {"role": "assistant", "content": "e"}]}` + "\n"
	const silent = `[{"role": "user", "content": "c"}]` + "\n"
	for name, c := range map[string]struct {
		template, chats string
		addBOS, all     bool
		most            int
		want, warning   string
	}{
		// the white space after </s> is not predicted
		"BOS is added": {template: turn, chats: chat, addBOS: true,
			want: "<s>|c|\n|<a>|(ab)|(</s>)|\n|\n|d|\n|<a>|(e)|(</s>)|\n|\n|"},
		"the template has BOS": {template: "{{ bos_token }}" + turn, chats: chat, addBOS: true,
			want: "<s>|c|\n|<a>|(ab)|(</s>)|\n|\n|d|\n|<a>|(e)|(</s>)|\n|\n|"},
		"no BOS": {template: turn, chats: chat, want: "c|\n|<a>|(ab)|(</s>)|\n|\n|d|\n|<a>|(e)|(</s>)|\n|\n|"},
		"two BOS": {template: "<s>{{ bos_token }}" + turn, chats: chat, addBOS: true,
			want: "<s>|<s>|c|\n|<a>|(ab)|(</s>)|\n|\n|d|\n|<a>|(e)|(</s>)|\n|\n|", warning: "begin with two BOS tokens"},
		"all": {template: turn, chats: silent + chat, addBOS: true, all: true,
			want: "<s>|(c)|(\n)|;<s>|(c)|(\n)|(<a>)|(ab)|(</s>)|(\n)|(\n)|(d)|(\n)|(<a>)|(e)|(</s>)|(\n)|(\n)|"},
		"some": {template: turn, chats: chat, addBOS: true, most: 12,
			want: "<s>|c|\n|<a>|(ab)|(</s>)|\n|\n|d|\n|<a>|(e)|"},
		"nothing said": {template: turn, chats: silent + chat, addBOS: true,
			want:    "<s>|c|\n|<a>|(ab)|(</s>)|\n|\n|d|\n|<a>|(e)|(</s>)|\n|\n|",
			warning: "in 1 of 2 conversations there is no token to predict, the first one in line 1"},
		// a token of both is one of the answer
		"straddling": {template: "{% for m in messages %}{% if m.role == 'assistant' %}{{ '\n' + m.content }}{% else %}{{ m.content }}!" +
			"{% endif %}{% endfor %}", chats: chat, want: "c|(!\n)|(ab)|d|(!\n)|(e)|"},
	} {
		t.Run(name, func(t *testing.T) {
			m := spoken(c.template, c.addBOS)
			v, err := vocab.New(m)
			if err != nil {
				t.Fatal(err)
			}
			chats, err := ReadChats(t.Context(), m, "m", "f", []byte(c.chats), ChatOptions{Answers: !c.all})
			if err != nil {
				t.Fatal(err)
			}
			var warnings []string
			list, of, err := chats.Sequences(v, c.all, c.most, func(s ...string) { warnings = append(warnings, s...) })
			if err != nil {
				t.Fatal(err)
			}
			if len(of) != len(list) || of[len(of)-1].Category != "x" {
				t.Errorf("%d of %d, %+v", len(of), len(list), of)
			}
			var shown []string
			for _, s := range list {
				var b strings.Builder
				asked := map[int]bool{}
				for _, q := range s.Queries {
					if s.Tokens[q.At+1] != q.Token {
						t.Errorf("query %+v of %v", q, s.Tokens)
					}
					asked[q.At+1] = true
				}
				for i, id := range s.Tokens {
					if asked[i] {
						fmt.Fprintf(&b, "(%s)|", v.Token(id))
					} else {
						fmt.Fprintf(&b, "%s|", v.Token(id))
					}
				}
				shown = append(shown, b.String())
			}
			if got := strings.Join(shown, ";"); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if got := strings.Join(warnings, "; "); (c.warning == "") != (got == "") || !strings.Contains(got, c.warning) {
				t.Errorf("warnings %q, want %q", got, c.warning)
			}
		})
	}
	m := spoken("{{ bos_token }}{% for m in messages %}{{ m.content }}</s>{% endfor %}", true)
	v, err := vocab.New(m)
	if err != nil {
		t.Fatal(err)
	}
	chats, err := ReadChats(t.Context(), m, "m", "f", []byte(silent+silent), ChatOptions{Answers: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := chats.Stream(v, nil); got != "c</s><s>c</s>" {
		t.Errorf("one text: %q", got)
	}
	if _, _, err := chats.Sequences(v, false, 0, nil); !errors.Is(err, fault.Refused) ||
		!strings.Contains(err.Error(), "f: 0 tokens to predict in 2 conversations") {
		t.Error(err)
	}
	if _, err := ReadChats(t.Context(), m, "m", "f", []byte("\n \n"), ChatOptions{}); !errors.Is(err, fault.Refused) {
		t.Error(err)
	}
	if c, err := ReadChats(t.Context(), m, "m", "f", []byte(silent+silent+"{"), ChatOptions{Most: 2}); err != nil || len(c.List) != 2 {
		t.Errorf("the first two: %v", err)
	}
	if !slices.Equal(chats.List[1].Answers, nil) || chats.List[1].Line != 2 {
		t.Errorf("%+v", chats.List[1])
	}
}
