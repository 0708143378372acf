package torch_test

import (
	"errors"
	"fmt"
	"log"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/torch"
	"ggforge/checkpoint/torch/torchfiletest"
)

// List the tensors of a file. A pickle that calls other functions is refused.
func ExampleParse() {
	data := torchfiletest.Encode([]torchfiletest.Tensor{
		{Name: "wte.weight", DType: safetensors.F16, Shape: []int64{4, 2}, Data: make([]byte, 16)},
		{Name: "bias", DType: safetensors.F32, Shape: []int64{2}, Data: make([]byte, 8)},
	})
	f, err := torch.Parse("model.bin", data)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range f.Tensors() {
		fmt.Println(t.Name, t.DType, t.Shape)
	}
	p := new(torchfiletest.Pickle)
	p.Op(0x80, 2).Global("os", "system").Op('(').Str("true").Op('t').Op('R').Op('.')
	_, err = torch.Parse("evil.bin", torchfiletest.Zip(p.Bytes(), nil, nil))
	fmt.Println(err, errors.Is(err, torch.ErrRefused))
	// Output:
	// wte.weight F16 [4 2]
	// bias F32 [2]
	// evil.bin: pickle (byte 48): names "os.system": only what makes tensors is read true
}
