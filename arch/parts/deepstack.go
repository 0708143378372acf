package parts

import (
	"cmp"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// A Projector of Granite 4 Vision adds the output of a vision encoder layer to a language model layer. There are two
// kinds: one averages over four neighbouring patches, the spatial one takes one of the four.
type Projector struct {
	VisionLayer int64 // layer of the vision encoder; a negative one counts from the end
	Layer       int64 // layer of the language model
	Spatial     bool
	Index       int64 // among the projectors of its kind in the checkpoint
}

// Projectors returns the projectors by their layers in a language model of n layers. For an unsorted list of pairs, the
// reference assigns projectors as if it were sorted. Source: get_normalized_projector_map of its converter.
func Projectors(c *config.View, n int64) ([]Projector, error) {
	const pairsKey, spatialKey = "deepstack_layer_map", "spatial_target_layers"
	pairs, _, err := c.IntLists(pairsKey)
	if err != nil {
		return nil, err
	}
	spatial, _, err := c.Ints(spatialKey)
	if err != nil {
		return nil, err
	}
	var list []Projector
	for i, pair := range pairs {
		if len(pair) != 2 {
			return nil, fault.Errorf(fault.Broken, "%s: key %q: %v, want pairs of layers", c.FileName(), pairsKey, pair)
		}
		list = append(list, Projector{VisionLayer: pair[0], Layer: pair[1], Index: int64(i)})
	}
	slices.SortStableFunc(list, func(a, b Projector) int {
		return cmp.Or(cmp.Compare(a.VisionLayer, b.VisionLayer),
			cmp.Compare(a.Layer, b.Layer))
	})
	for i := range list {
		if c.Options.Reference {
			list[i].Index = int64(i)
		}
		if list[i].Layer < 0 {
			list[i].Layer += n
		}
	}
	visionLayer, ok, err := c.Int("spatial_vision_layer")
	if !ok {
		visionLayer = -1
	}
	if err != nil {
		return nil, err
	}
	for i, layer := range spatial {
		list = append(list, Projector{VisionLayer: visionLayer, Layer: layer, Spatial: true, Index: int64(i)})
	}
	slices.SortStableFunc(list, func(a, b Projector) int { return cmp.Compare(a.Layer, b.Layer) })
	for i, p := range list {
		switch {
		case p.Layer < 0 || p.Layer >= n:
			return nil, fault.Errorf(fault.Broken, "%s: keys %q and %q: layer %d, want one of %d", c.FileName(),
				pairsKey, spatialKey, p.Layer, n)
		case i > 0 && list[i-1].Layer == p.Layer:
			return nil, fault.Errorf(fault.Unsupported,
				"%s: keys %q and %q: layer %d twice, a file has one for each layer", c.FileName(), pairsKey,
				spatialKey, p.Layer)
		}
	}
	return list, nil
}

// deepstackMapping writes for each layer the index of its projector, -1 for none. The first projector's output replaces
// the token embeddings.
func deepstackMapping(c *config.View) (gguf.Value, bool, error) {
	if c.Given("deepstack_layer_map") == nil && c.Given("spatial_target_layers") == nil {
		return gguf.Value{}, false, nil // models without projectors may lack the key of the number of layers
	}
	n, err := c.BoundedBlockCount(0)
	if err != nil {
		return gguf.Value{}, false, err
	}
	list, err := Projectors(c, n)
	if err != nil || len(list) == 0 {
		return gguf.Value{}, false, err
	}
	mapping := make([]int32, n)
	for i := range mapping {
		mapping[i] = -1
	}
	for i, p := range list[1:] {
		mapping[p.Layer] = int32(i + 1)
	}
	return gguf.Int32s(mapping), true, nil
}

// ProjectorKeys are the keys of config.json that only Granite 4 Vision's encoder reads.
var ProjectorKeys = slices.Concat(MultimodalKeys,
	[]string{"downsample_rate", "image_grid_pinpoints", "spatial_vision_layer", "spatial_stride",
		"use_spatial_sampling",
		"use_image_newline_parameter", "projector_dropout", "qformer_config"})

// DropProjectors drops the projectors in conversions of the language model.
var DropProjectors = []table.Drop{{Prefix: "model.layerwise_projectors.", Why: table.OtherPart},
	{Prefix: "model.spatial_projectors.", Why: table.OtherPart}}
