package safetensors_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ggforge/checkpoint"
	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
)

// Listing the tensors of a checkpoint.
func ExampleOpenDir() {
	dir, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	err = safetensorstest.Write(filepath.Join(dir, "model.safetensors"), []safetensorstest.Tensor{
		{Name: "model.norm.weight", DType: safetensors.F32, Shape: []int64{4}, Data: safetensorstest.F32(1, 1, 1, 1)},
		{Name: "lm_head.weight", DType: safetensors.BF16, Shape: []int64{2, 4}, Data: make([]byte, 16)},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}

	files, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer files.Close()
	c, err := safetensors.OpenDir(files, dir)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, t := range c.Tensors() {
		fmt.Println(t.Name, t.DType, t.Shape, len(t.Data()))
	}
	// Output:
	// lm_head.weight BF16 [2 4] 16
	// model.norm.weight F32 [4] 16
}

// The error for a broken file has the place of the fault.
func ExampleParse() {
	_, err := safetensors.Parse("model.safetensors", safetensorstest.Raw(
		[]byte(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`), make([]byte, 7)))
	fmt.Println(err)
	// Output:
	// model.safetensors: data (byte 71): the tensors need 8 bytes, the file has 7: it is cut off
}
