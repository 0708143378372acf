package imatrix_test

import (
	"fmt"
	"log"

	"ggforge/imatrix"
)

func Example() {
	m, err := imatrix.Open("testdata/imatrix_gg_imx.gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	ne := []int64{256, 12, 4} // GGUF dimension order: 4 experts of 12 rows of 256
	values, warning, err := m.Lookup("blk.0.ffn_up_exps.weight", ne)
	if warning != nil || err != nil {
		log.Fatal(warning, err)
	}
	fmt.Println(m.Len(), "entries,", m.Chunks, "chunks of", m.Datasets)
	fmt.Println(imatrix.Slice(values, ne, 1)[:4], "for expert 1")
	fmt.Println("unseen experts:", m.Entry("blk.0.ffn_up_exps.weight").Unseen())
	// Output:
	// 14 entries, 9 chunks of [a.txt b.txt]
	// [1 1 1 1] for expert 1
	// unseen experts: [1]
}
