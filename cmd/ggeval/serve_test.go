package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/convert"
	"ggforge/eval/serve"
	"ggforge/eval/texts"
)

// client sends requests to a server of gollama.
type client struct{ base string }

// startServer serves gollama until the test ends.
func startServer(t *testing.T) client {
	t.Helper()
	m, _, err := convert.Open(t.Context(), gollama, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := prepare(runs.Compared{Name: gollama, Source: m})
	if err != nil {
		t.Fatal(err)
	}
	v, err := texts.Vocabulary(m)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve.New(m, c.Model, v, serve.Options{Workers: 1}).Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		m.Close()
	})
	return client{"http://" + l.Addr().String()}
}

// call sends a request and returns the status and the body of the response.
func (c client) call(t *testing.T, method, path, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

// completed is a response to a request for completions.
type completed struct {
	Choices []struct {
		Index    int
		Text     string
		Logprobs struct {
			Tokens         []string
			Token_Logprobs []*float64
			Top_Logprobs   []map[string]float64
			Text_Offset    []int
		}
	}
	Usage map[string]int
}

func (c client) complete(t *testing.T, body string) (r completed) {
	t.Helper()
	status, text := c.call(t, "POST", "/v1/completions", body)
	if err := json.Unmarshal([]byte(text), &r); err != nil || status != 200 {
		t.Fatalf("%s: %d %s", body, status, text)
	}
	return r
}

// TestServeCompletions asks as local-completions of lm-evaluation-harness does, and compares with ggeval score: the sum
// over a continuation, and whether it is the greedy one, by the harness's condition on the numbers of the response.
func TestServeCompletions(t *testing.T) {
	c := startServer(t)
	var each []string
	for id := range 4096 {
		each = append(each, fmt.Sprintf(`{"context": [1, 300, 400], "continuation": [%d]}`, id))
	}
	most := slices.IndexFunc(answers(t, each, gollama), func(a map[string]any) bool { return a["is_greedy"] == true })
	continuations := [][]int{{500, 501}, {most}, {7, 8, 9}, {400}}
	contexts := [][]int{{1, 300, 400}, {1, 300, 400}, {1, 20}, {1, 300}}
	first := c.complete(t, `{"prompt": [1, 300, 400], "max_tokens": 1, "logprobs": 3, "temperature": 0}`)
	if n := len(first.Choices[0].Logprobs.Tokens); n != 1 || first.Usage["completion_tokens"] != 1 {
		t.Fatalf("%+v", first)
	}
	var list []string
	var prompts []any
	for i := range continuations {
		list = append(list, fmt.Sprintf(`{"context": %s, "continuation": %s}`, jsonOf(t, contexts[i]), jsonOf(t, continuations[i])))
		prompts = append(prompts, slices.Concat(contexts[i], continuations[i]))
	}
	want := answers(t, list, gollama)
	r := c.complete(t, fmt.Sprintf(`{"model": "x", "prompt": %s, "temperature": 0, "max_tokens": 1, "logprobs": 1, "seed": 1234,
		"echo": true}`, jsonOf(t, prompts)))
	greedies := 0
	for i, choice := range r.Choices {
		l, from := choice.Logprobs, len(contexts[i])
		if n := from + len(continuations[i]) + 1; choice.Index != i || len(l.Tokens) != n || len(l.Token_Logprobs) != n ||
			len(l.Top_Logprobs) != n || len(l.Text_Offset) != n || l.Token_Logprobs[0] != nil || l.Top_Logprobs[0] != nil {
			t.Fatalf("%+v", choice)
		}
		sum, greedy := 0.0, true
		for j := from; j < len(l.Tokens)-1; j++ {
			sum += *l.Token_Logprobs[j]
			most := 0.0
			for _, p := range l.Top_Logprobs[j] {
				most = p
			}
			greedy = greedy && *l.Token_Logprobs[j] == most && len(l.Top_Logprobs[j]) == 1
		}
		if sum != want[i]["logprob"] || greedy != want[i]["is_greedy"] {
			t.Errorf("choice %d: %v %v, want %v", i, sum, greedy, want[i])
		}
		if greedy {
			greedies++
		}
		if strings.Join(l.Tokens, "") != choice.Text {
			t.Errorf("choice %d: %q of %q", i, l.Tokens, choice.Text)
		}
	}
	if greedies != 1 {
		t.Errorf("%d greedy continuations", greedies)
	}
	// As text, without a token that is made, with the same probabilities.
	text := c.complete(t, `{"prompt": ["package main\n", "func é😀"], "max_tokens": 0, "logprobs": 2, "echo": true}`)
	if len(text.Choices) != 2 || !strings.Contains(text.Choices[1].Text, "func é😀") || text.Usage["completion_tokens"] != 0 {
		t.Errorf("%+v", text)
	}
	rolling := answers(t, []string{`{"text": "package main\n"}`}, gollama)[0]
	sum := 0.0
	for _, p := range text.Choices[0].Logprobs.Token_Logprobs[1:] {
		sum += *p
	}
	if sum != rolling["logprob"] {
		t.Errorf("%v, want %v", sum, rolling)
	}
	for _, top := range text.Choices[0].Logprobs.Top_Logprobs[1:] {
		if len(top) != 2 {
			t.Errorf("%v", top)
		}
	}
	if plain := c.complete(t, `{"prompt": "a", "max_tokens": 1}`); plain.Choices[0].Text == "" ||
		plain.Choices[0].Logprobs.Tokens != nil {
		t.Errorf("%+v", plain)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestServeTogether sends many requests at once: each gets its own answer.
func TestServeTogether(t *testing.T) {
	c := startServer(t)
	ask := func(id int) float64 {
		r := c.complete(t, fmt.Sprintf(`{"prompt": [1, %d, 400], "max_tokens": 0, "logprobs": %d, "echo": true}`, id, id%3))
		return *r.Choices[0].Logprobs.Token_Logprobs[2]
	}
	var all [12]float64
	var wait sync.WaitGroup
	for i := range all {
		wait.Go(func() { all[i] = ask(300 + i) })
	}
	wait.Wait()
	for i, p := range all {
		if alone := ask(300 + i); alone != p || slices.Index(all[:], p) != i {
			t.Errorf("request %d: %v, alone %v", i, p, alone)
		}
	}
}

// TestServeTokenizer checks the requests about the tokenizer and the server.
func TestServeTokenizer(t *testing.T) {
	c := startServer(t)
	status, text := c.call(t, "POST", "/tokenize", `{"prompt": "func main() {\n", "add_special_tokens": false}`)
	var r struct {
		Tokens []int
		Prompt string
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil || status != 200 || len(r.Tokens) == 0 || r.Tokens[0] == 1 {
		t.Fatal(status, text, err)
	}
	_, special := c.call(t, "POST", "/tokenize", `{"prompt": "func main() {\n"}`)
	if !strings.Contains(special, fmt.Sprintf(`"tokens":[1,%d,`, r.Tokens[0])) {
		t.Error(special)
	}
	_, text = c.call(t, "POST", "/detokenize", fmt.Sprintf(`{"tokens": %s}`, jsonOf(t, r.Tokens)))
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Prompt != "func main() {\n" {
		t.Errorf("%s: %q", text, r.Prompt)
	}
	for path, want := range map[string]string{"/tokenizer_info": `"bos_token":"<s>"`, "/health": "ok",
		"/v1/models": `"id":"gollama"`} {
		if status, text := c.call(t, "GET", path, ""); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", path, status, text, want)
		}
	}
}

// TestServeRefused checks statuses and messages of errors, which have OpenAI's form.
func TestServeRefused(t *testing.T) {
	c := startServer(t)
	for _, x := range []struct {
		method, path, body string
		header             []string
		status             int
		want               string
	}{
		{"GET", "/v1/completions", "", nil, 404, "want POST /v1/completions"}, {"POST", "/v1/chat/completions", "{}", nil, 404, "want POST"},
		{"POST", "/v1/completions", "{}", []string{"Content-Type", "text/plain"}, 415, "application/json"},
		{"POST", "/v1/completions", "{}", []string{"Host", "example.org"}, 403, "this machine's"},
		{"POST", "/v1/completions", strings.Repeat(" ", 17<<20), nil, 413, "more than 16777216 bytes"},
		{"POST", "/v1/completions", `{"prompt": "a"}`, nil, 400, "generates no texts"},
		{"POST", "/v1/completions", `{"prompt": [1, 99999], "max_tokens": 0}`, nil, 400, "prompt 0: token 1 is 99999"},
		{"POST", "/v1/completions", `{"prompt": [[1], []], "max_tokens": 0}`, nil, 400, "prompt 1: no tokens"},
		{"POST", "/detokenize", `{"tokens": [99999]}`, nil, 400, "token 0 is 99999"},
	} {
		status, text := c.call(t, x.method, x.path, x.body, x.header...)
		var r struct {
			Error struct{ Message, Type string }
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil || status != x.status || !strings.Contains(r.Error.Message, x.want) ||
			r.Error.Type != "invalid_request_error" {
			t.Errorf("%s %s %.60s: %d %s, want %d with %s", x.method, x.path, x.body, status, text, x.status, x.want)
		}
	}
}

// TestServe runs the verb until its context ends: it prints the address at which it answers, and ends without an error.
func TestServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	cmd := command()
	cmd.Writer, cmd.ErrWriter = w, new(bytes.Buffer)
	ended := make(chan error, 1)
	go func() { ended <- tool.Run(ctx, cmd, []string{"ggeval", "serve", gollama, "--address", "localhost:0"}) }()
	line := make([]byte, 512)
	n, err := r.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	_, base, ok := strings.Cut(strings.TrimSpace(string(line[:n])), ": ")
	if status, text := (client{base}).call(t, "GET", "/health", ""); !ok || status != 200 {
		t.Error(string(line[:n]), status, text)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
