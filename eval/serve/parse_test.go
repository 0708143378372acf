package serve

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestParseCompletion(t *testing.T) {
	c, err := parseCompletion([]byte(`{"model": "m", "prompt": ["a", [1, 2]], "temperature": 0, "max_tokens": 1, "logprobs": 5,
		"seed": 1, "echo": true, "stop": ["x"], "n": 1, "stream": false, "suffix": null}`))
	if err != nil || len(c.prompts) != 2 || c.prompts[0].text != "a" || !slices.Equal(c.prompts[1].ids, []int32{1, 2}) ||
		!c.echo || !c.next || c.top != 5 {
		t.Fatal(c, err)
	}
	if c, err = parseCompletion([]byte(`{"prompt": [3, 4], "max_tokens": 0}`)); err != nil || len(c.prompts) != 1 || c.echo ||
		c.next || c.top != -1 {
		t.Fatal(c, err)
	}
	for body, want := range map[string]string{
		`[]`: "want an object", `{`: "byte", `{"prompt":"a"}`: "\"max_tokens\": 16, want 0 or 1",
		`{"prompt":"a","max_tokens":2}`: "generates no texts", `{"prompt":"a","max_tokens":0.5}`: "0.5",
		`{"prompt":"a","max_tokens":1,"temperature":0.7}`: "temperature", `{"prompt":"a","max_tokens":1,"n":2}`: "\"n\"",
		`{"prompt":"a","max_tokens":1,"stream":true}`: "stream", `{"prompt":"a","max_tokens":1,"logit_bias":{"1":1}}`: "logit_bias",
		`{"prompt":"a","max_tokens":1,"logprobs":101}`: "up to 100", `{"prompt":"a","max_tokens":1,"logprobs":1.5}`: "logprobs",
		`{"prompt":"a","max_tokens":1,"grammar":"x"}`: "\"grammar\" is not supported", `{"max_tokens":1}`: "\"prompt\": null",
		`{"prompt":[],"max_tokens":1}`: "prompt", `{"prompt":[1,"a"],"max_tokens":1}`: "element 1",
		`{"prompt":["a",1],"max_tokens":1}`: "element 1 is the number 1", `{"prompt":[[1.5]],"max_tokens":1}`: "prompt 0: element 0",
		`{"prompt":[-1],"max_tokens":1}`: "element 0", `{"prompt":"a","max_tokens":1,"echo":"yes"}`: "echo",
		`{"prompt":[` + strings.Repeat(`"a",`, maxPrompts) + `"a"],"max_tokens":1}`: "2049 prompts",
	} {
		_, err := parseCompletion([]byte(body))
		if e := new(apiError); !errors.As(err, &e) || e.status != http.StatusBadRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", body, err, want)
		}
	}
}

func TestLocal(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:1": true, "localhost": true, "LOCALHOST:8": true, "[::1]:8": true, "::1": true,
		"127.9.9.9": true, "0.0.0.0:8": false, ":8": false, "": false, "localhost.example.org:8": false, "10.0.0.1:8": false} {
		if Local(address) != want {
			t.Errorf("%q: %v", address, !want)
		}
	}
}

// FuzzParse checks that any body is a request within the limits, or an error with the status 400.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"prompt": [[1, 2], "a"], "max_tokens": 1, "logprobs": 1, "echo": true}`,
		`{"prompt": "a", "add_special_tokens": false}`, `{"tokens": [1, 2]}`, `{"prompt": [1], "max_tokens": 0, "n": 1, "logprobs": true}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := parseCompletion(body)
		if err == nil {
			if len(c.prompts) == 0 || len(c.prompts) > maxPrompts || c.top < -1 || c.top > maxTop {
				t.Errorf("%+v", c)
			}
			for _, p := range c.prompts {
				if slices.ContainsFunc(p.ids, func(id int32) bool { return id < 0 }) || p.ids != nil && p.text != "" {
					t.Errorf("%+v", p)
				}
			}
		}
		_, _, other := parseTokenize(body)
		_, third := parseDetokenize(body)
		for _, err := range []error{err, other, third} {
			if e := new(apiError); err != nil && (!errors.As(err, &e) || e.status != http.StatusBadRequest) {
				t.Error(err)
			}
		}
	})
}
