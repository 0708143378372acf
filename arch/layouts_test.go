package arch

import (
	"fmt"
	"strings"
	"testing"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// matrix returns a tensor of the given dimensions, innermost first, whose rows
// are numbered: each element is the number of its row.
func matrix(t *testing.T, ne ...int64) rows.Source {
	t.Helper()
	values := make([]float32, gguf.Rows(ne)*ne[0])
	for i := range values {
		values[i] = float32(int64(i) / ne[0])
	}
	s, err := rows.Reshape(rows.Float32s(values), ne)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRowParts checks which rows transforms that split matrices give, and
// that they refuse shapes that the config does not lead to expect.
func TestRowParts(t *testing.T) {
	cfg := func(text string) *config.View {
		c := view(t, `{"architectures": ["none"], `+text+`}`)
		return c
	}
	heads := cfg(`"hidden_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2`) // heads of 2
	none := cfg(`"hidden_size": 8, "num_attention_heads": 0, "num_key_value_heads": 2`)
	ten := cfg(`"num_attention_heads": 10`)
	dbrx := cfg(`"ffn_config": {"moe_num_experts": 3}`)
	for _, c := range []struct {
		transform *table.Transform
		config    *config.View
		ne        []int64
		want      string // numbers of the rows, or "error: " and its kind
	}{
		{parts.QOfJoined, heads, []int64{3, 16}, "0 1 2 3 4 5 6 7"},
		{parts.KOfJoined, heads, []int64{3, 16}, "8 9 10 11"},
		{parts.VOfJoined, heads, []int64{3, 16}, "12 13 14 15"},
		{parts.VOfJoined, heads, []int64{3, 15}, "error"},
		{parts.QOfJoined, none, []int64{3, 16}, "error"},
		{groupedQ, heads, []int64{3, 16}, "0 1 2 3 8 9 10 11"},
		{groupedK, heads, []int64{3, 16}, "4 5 12 13"},
		{groupedV, heads, []int64{3, 16}, "6 7 14 15"},
		{groupedV, heads, []int64{3, 18}, "error"},
		{groupedV, none, []int64{3, 16}, "error"},
		{thirdOfRows("k", 1, false), heads, []int64{3, 6}, "2 3"},
		{thirdOfRows("k", 1, false), heads, []int64{3, 7}, "error"},
		{plamoQ, ten, []int64{3, 10}, "0 5 1 6 2 7 3 8 4 9"},
		{plamoQ, ten, []int64{3, 12}, "error"},
		{plamoQ, heads, []int64{3, 12}, "error"},
		{dbrxExperts, dbrx, []int64{3, 6}, "0 1 2 3 4 5"},
		{dbrxExperts, dbrx, []int64{3, 7}, "error"},
		{parts.SqueezeKernel, heads, []int64{4, 1, 3}, "0 1 2"},
		{parts.SqueezeKernel, heads, []int64{4, 2, 3}, "error"},
	} {
		s, err := c.transform.Apply(table.Layer{View: c.config, Bid: 0}, matrix(t, c.ne...))
		if err != nil {
			if c.want != "error" || !fault.Has(err) {
				t.Errorf("%s of %v: %v, want %s", c.transform.Name, c.ne, err, c.want)
			}
			continue
		}
		row := make([]float32, s.NE()[0])
		var got []string
		for i := range gguf.Rows(s.NE()) {
			if err := rows.Decode(s, row, new([]byte), i, i+1); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(row[0]))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s of %v: rows %s, want %s", c.transform.Name, c.ne, text, c.want)
		}
	}
}

// TestTernary rounds to three values of one scale.
func TestTernary(t *testing.T) {
	s, err := rows.Reshape(rows.Float32s([]float32{1, -1, 0.25, -0.25, 3, 0.5}), []int64{3, 2}) // mean 1
	if err != nil {
		t.Fatal(err)
	}
	if s, err = ternary.Apply(table.Layer{}, s); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 6)
	if err := rows.Decode(s, got, new([]byte), 0, 2); err != nil {
		t.Fatal(err)
	}
	if want := "[1 -1 0 -0 1 0]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}
