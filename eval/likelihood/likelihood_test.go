package likelihood

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer/vocab"
)

// small returns a vocabulary with a token for each letter and for the blank, and some longer ones: <s> is 1, a is 3.
func small(t testing.TB, changes ...gguf.KV) *vocab.Vocab {
	t.Helper()
	tokens := []string{"<unk>", "<s>", "</s>"}
	types := []int32{2, 3, 3}
	scores := []float32{0, 0, 0}
	for _, s := range strings.Split("a b c d e f g h ▁ \n ab ▁a ▁b", " ") {
		tokens, types, scores = append(tokens, s), append(types, 1), append(scores, -float32(4-len([]rune(s))))
	}
	m := gguf.Metadata{
		{Key: "tokenizer.ggml.model", Value: gguf.String("llama")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings(tokens)},
		{Key: "tokenizer.ggml.scores", Value: gguf.Float32s(scores)},
		{Key: "tokenizer.ggml.token_type", Value: gguf.Int32s(types)},
		{Key: "tokenizer.ggml.add_space_prefix", Value: gguf.Bool(false)},
	}
	for _, kv := range changes {
		m.Set(kv.Key, kv.Value)
	}
	v, err := vocab.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// describe returns a sequence as the names of its tokens, those that are asked for in brackets.
func describe(t *testing.T, v *vocab.Vocab, s eval.Sequence) string {
	t.Helper()
	var b strings.Builder
	for i, id := range s.Tokens {
		asked := slices.ContainsFunc(s.Queries, func(q eval.Query) bool { return q.At == i-1 && q.Token == id })
		if name := v.Token(id); asked {
			fmt.Fprintf(&b, "[%s]", name)
		} else {
			b.WriteString(name + " ")
		}
	}
	return b.String()
}

// TestSequences checks which tokens a model reads for a request, and which of them are scored.
func TestSequences(t *testing.T) {
	noBOS := gguf.KV{Key: "tokenizer.ggml.add_bos_token", Value: gguf.Bool(false)}
	text := func(s string) Input { return Input{Text: s} }
	ids := func(ids ...int32) Input { return Input{Tokens: ids, IsTokens: true} }
	for _, c := range []struct {
		name    string
		r       Request
		context int
		changes []gguf.KV
		want    string
	}{
		{"pair", Request{Context: text("cd"), Continuations: []Input{text("ef")}}, 0, nil, "<s> c d [e][f]"},
		{"no BOS", Request{Context: text("cd"), Continuations: []Input{text("ef")}}, 0, []gguf.KV{noBOS}, "c d [e][f]"},
		// The blank goes with the continuation, of which it becomes a token.
		{"blank", Request{Context: text("cd "), Continuations: []Input{text("ae")}}, 0, nil, "<s> c d [▁a][e]"},
		{"blanks", Request{Context: text("cd\n "), Continuations: []Input{text("b")}}, 0, nil, "<s> c d [\n][▁b]"},
		// A merge over the border: the context alone has two tokens, and the continuation is what comes after as many.
		{"merged", Request{Context: text("ca"), Continuations: []Input{text("bd")}}, 0, nil, "<s> c ab [d]"},
		{"empty", Request{Context: text(""), Continuations: []Input{text("cd")}}, 0, []gguf.KV{noBOS}, "<s> [c][d]"},
		{"only blanks", Request{Context: text(" "), Continuations: []Input{text("a")}}, 0, nil, "<s> [▁a]"},
		{"choices", Request{Kind: Choices, Context: text("c"), Continuations: []Input{text("d"), text(" a")}}, 0, nil,
			"<s> c [d], <s> c [▁a]"},
		{"ids", Request{Context: ids(3, 4), Continuations: []Input{ids(5)}}, 0, nil, "a b [c]"},
		{"no ids", Request{Context: ids(), Continuations: []Input{ids(5)}}, 0, nil, "<s> [c]"},
		{"cut", Request{Context: text("cdef"), Continuations: []Input{text("gh")}}, 3, nil, "e f [g][h]"},
		{"not cut", Request{Context: text("cdef"), Continuations: []Input{text("gh")}}, 6, nil, "<s> c d e f [g][h]"},
		{"text", Request{Kind: WholeText, Continuations: []Input{text("cde")}}, 0, []gguf.KV{noBOS}, "<s> [c][d][e]"},
		// The windows in the documentation of lm-evaluation-harness: ten tokens, of which a model reads four.
		{"windows", Request{Kind: WholeText, Continuations: []Input{ids(3, 4, 5, 6, 7, 8, 9, 10, 3, 4)}}, 4, nil,
			"<s> [a][b][c][d], d [e][f][g][h], f g h [a][b]"},
		{"one token", Request{Kind: WholeText, Continuations: []Input{text("c")}}, 4, nil, "<s> [c]"},
	} {
		v := small(t, c.changes...)
		e := encoder{v: v, o: &Options{Context: c.context}}
		values, err := e.add(&c.r)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		scored := 0
		for _, s := range e.groups[0] {
			got = append(got, describe(t, v, s))
			scored += len(s.Queries)
			if n := c.context; n > 0 && len(s.Tokens)-1 > n {
				t.Errorf("%s: reads %d tokens", c.name, len(s.Tokens)-1)
			}
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
		sum := 0
		for _, v := range values {
			sum += v.Tokens
		}
		if cut := c.name == "cut" || c.name == "windows"; sum != scored || values[0].Cut != cut {
			t.Errorf("%s: %+v, %d scored", c.name, values, scored)
		}
	}
}

// TestGroups checks that neighbours with one context are one group, and no others.
func TestGroups(t *testing.T) {
	pair := func(c, next string) Request {
		return Request{Context: Input{Text: c}, Continuations: []Input{{Text: next}}}
	}
	list := []Request{pair("a", "c"), pair("a", "d"), {Kind: WholeText, Continuations: []Input{{Text: "a"}}}, pair("a", "e"),
		pair("a ", "e"), {Context: Input{IsTokens: true, Tokens: []int32{3}}, Continuations: []Input{{IsTokens: true, Tokens: []int32{3}}}}}
	e := encoder{v: small(t), o: new(Options)}
	for i := range list {
		if _, err := e.add(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{0, 0, 1, 2, 3, 4}; !slices.Equal(e.groupOf, want) || len(e.groups[0]) != 2 {
		t.Errorf("groups %v, want %v", e.groupOf, want)
	}
}

// TestRefusedSequences checks what has nothing to score.
func TestRefusedSequences(t *testing.T) {
	text := func(s string) Input { return Input{Text: s} }
	ids := func(ids ...int32) Input { return Input{Tokens: ids, IsTokens: true} }
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{Context: text("c"), Continuations: []Input{text("")}}, "adds no token"},
		{Request{Kind: Choices, Context: text("a"), Continuations: []Input{text("c"), text("b")}}, "choice 2: the continuation adds no token"},
		{Request{Kind: WholeText, Continuations: []Input{text("")}}, "no tokens"},
		{Request{Context: ids(3), Continuations: []Input{ids(99)}}, "token 99, want less than 16"},
		{Request{Context: ids(99), Continuations: []Input{ids(3)}}, "token 99"},
		{Request{Kind: WholeText, Continuations: []Input{ids(3, 99)}}, "element 1 is token 99"},
		{Request{Context: text("c"), Continuations: []Input{text("defgh")}}, "has 5 tokens, and the model reads 4"},
	} {
		e := encoder{v: small(t), o: &Options{Context: 4}}
		if _, err := e.add(&c.r); !errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.r, err, c.want)
		}
	}
}

func TestRead(t *testing.T) {
	list, err := Read("f", strings.NewReader("{\"context\":\"a\",\"continuation\":\" b\"}\n\n"+
		"{\"id\":\"x\",\"prompt\":[1,2],\"choices\":[[3],[]]}\r\n{\"text\":\"\\u00e9\\ud83d\\ude00\",\"id\":12}"))
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	if r := list[0]; r.Line != 1 || r.Kind != Pair || r.Context.Text != "a" || r.Continuations[0].Text != " b" || r.ID != nil {
		t.Errorf("%+v", r)
	}
	if r := list[1]; r.Line != 3 || r.Kind != Choices || r.ID != "x" || !slices.Equal(r.Context.Tokens, []int32{1, 2}) ||
		len(r.Continuations) != 2 || !r.Continuations[1].IsTokens {
		t.Errorf("%+v", r)
	}
	if r := list[2]; r.Kind != WholeText || r.Continuations[0].Text != "é😀" || fmt.Sprint(r.ID) != "12" {
		t.Errorf("%+v", r)
	}
	for _, c := range []struct {
		text, want string
		is         error
	}{
		{"", "f: no requests", fault.Refused}, {"\n \n", "no requests", fault.Refused},
		{"{}", "f: line 1: members []", fault.Broken}, {"\n[1]", "line 2: a list, want an object", fault.Broken},
		{`{"context":"a"}`, "members [\"context\"]", fault.Broken},
		{`{"context":"a","continuation":"b","more":1}`, "more", fault.Broken},
		{`{"context":1,"continuation":"b"}`, "\"context\": the number 1, want a text", fault.Broken},
		{`{"context":"a","continuation":[1]}`, "\"continuation\": one is a text", fault.Broken},
		{`{"prompt":"a","choices":["b",[1]]}`, "\"choices\": one is a text", fault.Broken},
		{`{"prompt":"a","choices":[]}`, "\"choices\"", fault.Broken},
		{`{"prompt":"a","choices":["b",null]}`, "choice 2: null", fault.Broken},
		{`{"text":[1,-1]}`, "element 1 is the number -1", fault.Broken}, {`{"text":[1.0]}`, "element 0", fault.Broken},
		{`{"text":[true]}`, "element 0 is true", fault.Broken}, {`{"text":[4294967296]}`, "element 0", fault.Broken},
		{`{"text":"\ud800"}`, "half of a surrogate pair", fault.Broken},
		{`{"text":"a","id":[1]}`, "\"id\": a list", fault.Broken}, {`{"text":"a","id":NaN}`, "\"id\"", fault.Broken},
		{`{"text":"a"`, "line 1: byte", fault.Broken}, {"{\"text\":\"a\"}\n\xff", "line 2: byte 0: not UTF-8", fault.Broken},
		{strings.Repeat(" ", maxLine+1), "line 1: more than", fault.Unsupported},
	} {
		if _, err := Read("f", strings.NewReader(c.text)); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %s", c.text, err, c.want)
		}
	}
}

// FuzzRead checks that any bytes give requests that can be encoded, or an error with a kind.
func FuzzRead(f *testing.F) {
	for _, s := range []string{`{"context":"a ","continuation":"b"}`, `{"prompt":[1],"choices":[[2],[3]],"id":1}`, `{"text":"ab"}`,
		"{\"text\":[]}\n{\"context\":\"\",\"continuation\":\"\"}", `{"text":"\ud83d"}`} {
		f.Add([]byte(s))
	}
	v := small(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Read("f", strings.NewReader(string(data)))
		if err != nil {
			if !fault.Has(err) {
				t.Error(err)
			}
			return
		}
		e := encoder{v: v, o: &Options{Context: 8}}
		for i := range list {
			values, err := e.add(&list[i])
			if err != nil {
				if !fault.Has(err) {
					t.Error(err)
				}
				return
			}
			for _, x := range values {
				if x.Tokens < 1 || x.Before < 1 {
					t.Errorf("%+v", x)
				}
			}
		}
		for _, g := range e.groups {
			for _, s := range g {
				for _, q := range s.Queries {
					if q.At < 0 || q.At >= len(s.Tokens)-1 || s.Tokens[q.At+1] != q.Token {
						t.Errorf("%+v of %v", q, s.Tokens)
					}
				}
			}
		}
	})
}
