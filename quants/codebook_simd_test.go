//go:build goexperiment.simd && go1.27

package quants

import (
	"bytes"
	"simd"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/gen"
)

// The vector encoders give the scalar bytes where vectors are emulated, too, though
// they are not installed then.
func TestCodebookLanes(t *testing.T) {
	t.Logf("%d bits, emulated: %v", simd.VectorBitSize(), simd.Emulated())
	x, n := gen.Input("normal/1x1024")
	w := gen.Importance("uni", n)
	for typ, quantize := range map[gguf.Type]func([]byte, []float32, []float32){
		gguf.TypeIQ1_S:   quantizeIQ1_SLanes,
		gguf.TypeIQ1_M:   quantizeIQ1_MLanes,
		gguf.TypeIQ2_XXS: quantizeIQ2_XXSLanes,
		gguf.TypeIQ2_XS:  quantizeIQ2_XSLanes,
		gguf.TypeIQ2_S:   quantizeIQ2_SLanes,
		gguf.TypeIQ3_XXS: quantizeIQ3_XXSLanes,
		gguf.TypeIQ3_S:   quantizeIQ3_SLanes,
	} {
		got, want := make([]byte, typ.RowBytes(int64(n))), make([]byte, typ.RowBytes(int64(n)))
		quantize(got, x, w)
		scalarRegistry[typ].quantize(want, x, w)
		if !bytes.Equal(got, want) {
			t.Errorf("%v: %s", typ, explainDiff(typ, got, want))
		}
	}
}
