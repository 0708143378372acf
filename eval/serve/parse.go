package serve

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ggforge/internal/text/pyjson"
)

// prompt is a text, or ids.
type prompt struct {
	text string
	ids  []int32 // in place of text, unless nil
}

// completion is a request for completions.
type completion struct {
	prompts []prompt
	echo    bool
	next    bool // one greedy token
	top     int  // how many of the most probable tokens; -1 for no log-probabilities
}

// object returns the object in a body, whose members are some of names.
func object(body []byte, names string) (*pyjson.Object, error) {
	v, err := pyjson.Parse(body)
	if err != nil {
		return nil, invalid("%v", err)
	}
	o, ok := v.(*pyjson.Object)
	if !ok {
		return nil, invalid("%s, want an object", pyjson.Describe(v))
	}
	for _, name := range o.Names {
		if !slices.Contains(strings.Fields(names), name) {
			return nil, invalid("%s is not supported: want some of %s", pyjson.Quote(name), names)
		}
	}
	return o, nil
}

// parseTokenize returns the text of a request to /tokenize, and whether special tokens are added.
func parseTokenize(body []byte) (text string, special bool, err error) {
	o, err := object(body, "model prompt add_special_tokens")
	if err != nil {
		return "", false, err
	}
	text, ok := o.Get("prompt").(string)
	if !ok {
		return "", false, invalid("\"prompt\": %s, want a text", pyjson.Describe(o.Get("prompt")))
	}
	special, err = flag(o, "add_special_tokens", true)
	return text, special, err
}

func parseDetokenize(body []byte) ([]int32, error) {
	o, err := object(body, "model tokens")
	if err != nil {
		return nil, err
	}
	list, ok := o.Get("tokens").([]any)
	if !ok {
		return nil, invalid("\"tokens\": %s, want a list of ids", pyjson.Describe(o.Get("tokens")))
	}
	return idsOf(list)
}

// parseCompletion returns a request for completions. What would need texts to be generated or sampled is refused;
// settings of sampling that cannot change the most probable token are passed over.
func parseCompletion(body []byte) (c completion, err error) {
	o, err := object(body, "model prompt max_tokens temperature logprobs echo seed stop user n best_of stream suffix top_p "+
		"top_k min_p frequency_penalty presence_penalty logit_bias")
	if err != nil {
		return c, err
	}
	for name, usual := range map[string]float64{"n": 1, "best_of": 1, "temperature": 0, "frequency_penalty": 0,
		"presence_penalty": 0} {
		if x, err := number(o, name, usual); err != nil || x != usual {
			return c, invalid("%q: want %v: nothing is sampled", name, usual)
		}
	}
	if stream, err := flag(o, "stream", false); err != nil || stream {
		return c, invalid("\"stream\": want false")
	}
	for _, name := range []string{"suffix", "logit_bias"} {
		if pyjson.Truthy(o.Get(name)) {
			return c, invalid("%q is not supported", name)
		}
	}
	switch n, err := number(o, "max_tokens", 16); {
	case err != nil:
		return c, err
	case n != 0 && n != 1:
		return c, invalid("\"max_tokens\": %v, want 0 or 1: this server scores prompts and generates no texts", n)
	default:
		c.next = n == 1
	}
	if c.echo, err = flag(o, "echo", false); err != nil {
		return c, err
	}
	c.top = -1
	switch v := o.Get("logprobs").(type) {
	case nil:
	case bool:
		if v {
			c.top = 1
		}
	default:
		n, err := number(o, "logprobs", 0)
		if err != nil || n < 0 || n > maxTop || n != math.Trunc(n) {
			return c, invalid("\"logprobs\": %s, want a whole number up to %d", pyjson.Describe(v), maxTop)
		}
		c.top = int(n)
	}
	c.prompts, err = prompts(o.Get("prompt"))
	return c, err
}

// prompts returns the prompts of a text, a list of ids, or a list of either.
func prompts(v any) ([]prompt, error) {
	if text, ok := v.(string); ok {
		return []prompt{{text: text}}, nil
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, invalid("\"prompt\": %s, want a text, ids, or a list of either", pyjson.Describe(v))
	}
	if _, ok := list[0].(json.Number); ok {
		ids, err := idsOf(list)
		return []prompt{{ids: ids}}, err
	}
	if len(list) > maxPrompts {
		return nil, invalid("\"prompt\": %d prompts, want at most %d", len(list), maxPrompts)
	}
	var all []prompt
	for i, v := range list {
		switch v := v.(type) {
		case string:
			all = append(all, prompt{text: v})
		case []any:
			ids, err := idsOf(v)
			if err != nil {
				return nil, fmt.Errorf("prompt %d: %w", i, err)
			}
			all = append(all, prompt{ids: ids})
		default:
			return nil, invalid("\"prompt\": element %d is %s, want a text or a list of ids", i, pyjson.Describe(v))
		}
	}
	return all, nil
}

// idsOf returns a list of ids, which is not nil.
func idsOf(list []any) ([]int32, error) {
	ids := make([]int32, len(list))
	for i, x := range list {
		n, ok := x.(json.Number)
		id, err := strconv.ParseInt(string(n), 10, 32)
		if !ok || err != nil || id < 0 {
			return nil, invalid("element %d is %s, want the id of a token", i, pyjson.Describe(x))
		}
		ids[i] = int32(id)
	}
	return ids, nil
}

// flag returns a member that is true or false; null is the usual value.
func flag(o *pyjson.Object, name string, usual bool) (bool, error) {
	switch v := o.Get(name).(type) {
	case nil:
		return usual, nil
	case bool:
		return v, nil
	default:
		return false, invalid("%q: %s, want true or false", name, pyjson.Describe(v))
	}
}

// number returns a member that is a number; null is the usual value.
func number(o *pyjson.Object, name string, usual float64) (float64, error) {
	switch v := o.Get(name).(type) {
	case nil:
		return usual, nil
	case json.Number:
		if x, err := v.Float64(); err == nil {
			return x, nil
		}
	}
	return 0, invalid("%q: %s, want a number", name, pyjson.Describe(o.Get(name)))
}
