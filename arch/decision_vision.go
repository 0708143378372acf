package arch

import (
	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
)

var _ = registerEncoder(pplxDeciderVision, vllmD3Vision)

var pplxDeciderVision = parts.Qwen3VLEncoder([]string{"PplxDeciderModel"},
	table.Row{Key: "vision.image_min_pixels", Derive: processorSize("shortest_edge")},
	table.Row{Key: "vision.image_max_pixels", Derive: processorSize("longest_edge")})

var vllmD3Vision = parts.Qwen3VLEncoder([]string{"VllmD3Model"},
	table.Row{Key: "vision.image_min_pixels", Const: gguf.Uint32(65_536)},
	table.Row{Key: "vision.image_max_pixels", Const: gguf.Uint32(1_638_400)})

// processorSize writes a number of pixels from the processor's size.
func processorSize(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		n, err := c.Processor().Sub("size").Require(key)
		return table.Uint32Of(n, true, err)
	}
}
