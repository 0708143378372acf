package parts

import (
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/gguf"
)

// DenseRows write the sizes of the dense modules if the output has them.
func DenseRows() []table.Row {
	var list []table.Row
	for _, name := range []string{"dense_2", "dense_3"} {
		size := func(of func(config.DenseModule) int64) table.Derive {
			return func(c *config.View) (v gguf.Value, ok bool, err error) {
				for _, m := range c.Facts.Dense {
					if m.Name == name {
						return table.Uint32Of(of(m), true, nil)
					}
				}
				return v, false, nil
			}
		}
		list = append(list,
			table.Row{Key: name + "_feat_in", Derive: size(func(m config.DenseModule) int64 { return m.In }),
				Facts: config.DenseFiles},
			table.Row{Key: name + "_feat_out", Derive: size(func(m config.DenseModule) int64 { return m.Out }),
				Facts: config.DenseFiles})
	}
	return list
}

// The values of pooling_type.
const (
	PoolMean = 1
	PoolCLS  = 2
	poolLast = 3
	PoolRank = 4
)

// PoolingRow writes the pooling type of an embedding model.
var PoolingRow = table.Row{Key: "pooling_type", Facts: config.PoolingFiles,
	Derive: func(c *config.View) (gguf.Value, bool, error) {
		n, ok := PoolModes[c.Facts.Pooling]
		return gguf.Uint32(n), ok, nil
	}}

// PoolModes maps names of pooling types to values of pooling_type.
var PoolModes = map[string]uint32{"mean": PoolMean, "cls": PoolCLS, "lasttoken": poolLast}
