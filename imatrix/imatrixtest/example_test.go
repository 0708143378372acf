package imatrixtest_test

import (
	"fmt"
	"log"

	"ggforge/imatrix"
	"ggforge/imatrix/imatrixtest"
)

// A file of the GGUF format with one entry, for a test.
func ExampleGGUF() {
	data := imatrixtest.GGUF([]imatrixtest.Entry{{Name: "blk.0.attn_q.weight", Sums: []float32{2, 4},
		Counts: []float32{2}}}, []string{"calibration.txt"}, 1)
	m, err := imatrix.Parse("made up", data)
	if err != nil {
		log.Fatal(err)
	}
	values, err := m.Values(m.Entry("blk.0.attn_q.weight"))
	fmt.Println(values, err)
	// Output: [1 2] <nil>
}
