package rows_test

import (
	"fmt"
	"log"

	"ggforge/gguf"
	"ggforge/rows"
)

// Two matrices, one below the other, of which a caller reads single rows in another type: nothing but the rows asked
// for is computed.
func Example() {
	matrix := func(v ...float32) rows.Source {
		s, err := rows.Reshape(rows.Float32s(v), []int64{2, int64(len(v)) / 2})
		if err != nil {
			log.Fatal(err)
		}
		return s
	}
	joined, err := rows.Concat([]rows.Source{matrix(1, 2, 3, 4), matrix(5, 6)})
	if err != nil {
		log.Fatal(err)
	}
	half := rows.Convert(joined, gguf.TypeF16)
	var buf []byte
	raw, err := half.Raw(&buf, 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(half.NE(), half.Type())
	fmt.Printf("row 2: % x\n", raw)
	// Output:
	// [2 3] F16
	// row 2: 00 45 00 46
}
