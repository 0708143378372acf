package identity_test

import (
	"context"
	"fmt"
	"log"

	"ggforge/gguf"
	"ggforge/model"
	"ggforge/model/identity"
	"ggforge/rows"
)

// Two models with the same header and different weights are not the same.
func ExampleOf() {
	var ids []string
	for _, weight := range []float32{1, 2} {
		m := &model.Model{
			Metadata: gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}},
			Tensors:  []model.Tensor{model.New("output_norm.weight", rows.Float32s([]float32{weight, 2.5}))},
		}
		id, err := identity.Of(context.Background(), m)
		if err != nil {
			log.Fatal(err)
		}
		ids = append(ids, id)
	}
	fmt.Println(len(ids[0]), ids[0] == ids[1])
	// Output: 64 false
}
