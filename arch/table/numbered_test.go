package table

import (
	"slices"
	"testing"

	"ggforge/arch/config"
	"ggforge/rows"
)

// TestNumbersInComponents finds parts by the numbers at the end of a component, and a
// layer's tensors by a prefix that only this layer has.
func TestNumbersInComponents(t *testing.T) {
	a := &Arch{
		Name:   "numbered",
		Rename: []Rename{{Prefix: "layers.{bid}.table.", With: "table.", If: odd}},
		Tensors: []TensorRow{{HF: "table.shard_{xid}", GGUF: "shards", Group: "shards",
			Experts: func(Layer) (int64, error) { return 3, nil },
			Join:    func(_ Layer, s []rows.Source) (rows.Source, error) { return rows.Concat(s) }}},
	}
	c, err := config.Parse([]byte(`{"architectures": ["Numbered"], "num_hidden_layers": 2}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{
		"layers.0.table.shard_1.weight", "layers.1.table.shard_0.weight", "layers.1.table.shard_01.weight",
		"layers.1.table.shard_2.weight",
		"layers.1.table.shard_3.weight", "layers.1.tables.shard_1.weight", "layers.x.table.shard_1.weight",
		"table.part_1.weight",
	}
	lay, err := a.Layout(c.View(config.Options{}), names)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{names[0], names[2], names[5], names[6], names[7]}
	if !slices.Equal(lay.Unmapped, want) {
		t.Errorf("without a place: %q, want %q", lay.Unmapped, want)
	}
	if !slices.Equal(lay.ExtraExperts, names[4:5]) {
		t.Errorf("beyond their number: %q, want %q", lay.ExtraExperts, names[4])
	}
	if !slices.Equal(lay.Missing, []string{"table.shard_1.weight"}) {
		t.Errorf("missing: %q, want the shard between the others", lay.Missing)
	}
	if lay, err = a.Layout(c.View(config.Options{}), []string{"layers.1.table.shard_2.weight", "table.shard_0.weight",
		"layers.1.table.shard_1.weight"}); err != nil {
		t.Fatal(err)
	}
	if len(lay.Outputs) != 1 || !slices.Equal(lay.Outputs[0].From, []int{1, 2, 0}) {
		t.Errorf("outputs %+v, want the shards in the order of their numbers", lay.Outputs)
	}
}
