//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTileAsymAVX2 checks that searchAsymAVX2 finds the same as searchAsymTiles, which no encoder runs where there
// is AVX2.
func TestTileAsymAVX2(t *testing.T) {
	if !tilesByAVX2 {
		t.Skip("UNTESTED: tiles do not have 8 lanes, or there is no AVX2")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var got, want kScratch
	exact, lanes := 0, 0
	for round := range 400 {
		k := []*scaleMinKernel{&q4_KKernel, &q5_KKernel, &q2_KKernel, &q4_1Kernel, &q5_1Kernel}[round%5]
		table := k.weighted
		if k.plain != nil && round%2 == 0 {
			table = k.plain
		}
		tiles, tile := 2+round/5%2*2, 8*k.n
		x, w := make([]float32, tiles*tile), make([]float32, tiles*tile)
		for i := range x {
			// Lanes around different middles, some far from 0 compared to their range.
			x[i] = float32(rng.NormFloat64()) + float32(i%8-4)*float32(round%7)
			w[i] = float32(rng.ExpFloat64())
			switch i % 16 {
			case 3:
				x[i] *= 1e-38
			case 5:
				x[i] = -1 - float32(rng.IntN(3))*0x1p-23
			case 6:
				w[i] *= float32(rng.IntN(2))
			case 11:
				x[i] = float32(rng.IntN(2))
			}
		}
		part := func(s *kScratch, at int) *asymFit {
			return &asymFit{s.scale[at:], s.mins[at:], s.step[at:], s.base[at:], s.exact[at:]}
		}
		searchAsymAVX2(table, k.n, x, w, got.pairs[:], part(&got, 0))
		for i := 0; i < tiles; i += 2 {
			searchAsymTiles(table, x[i*tile:][:2*tile], w[i*tile:][:2*tile], want.pairs[:6*tile+1], part(&want, 8*i))
		}
		for l := range 8 * tiles {
			lanes++
			g, h := part(&got, 0), part(&want, 0)
			if g.exact[l] == 0 {
				continue // searched one by one
			}
			exact++
			for _, v := range [][2][]float32{{g.scale, h.scale}, {g.negMin, h.negMin}, {g.step, h.step},
				{g.base, h.base}} {
				if math.Float32bits(v[0][l]) != math.Float32bits(v[1][l]) {
					t.Fatalf("round %d lane %d: got %v, want %v", round, l, v[0][l], v[1][l])
				}
			}
			if h.exact[l] == 0 {
				t.Fatalf("round %d lane %d: exact, but not in searchAsymTiles", round, l)
			}
		}
	}
	t.Logf("%d lanes compared", exact)
	if exact < lanes*3/4 {
		t.Errorf("%d of %d lanes compared", exact, lanes)
	}
}

// TestTileSymAVX2 checks that searchSymAVX2 finds the same as searchSymTile.
func TestTileSymAVX2(t *testing.T) {
	if !tilesByAVX2 {
		t.Skip("UNTESTED: tiles do not have 8 lanes, or there is no AVX2")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var s kScratch
	for round := range 400 {
		table, n := []*symTable{symQ6_K, symQ3_K, symQ4_0, symQ5_0}[round%4], []int{16, 16, 32, 32}[round%4]
		x, w := make([]float32, 8*n), make([]float32, 8*n)
		for i := range x {
			x[i], w[i] = float32(rng.NormFloat64()), float32(rng.ExpFloat64())
			switch i % 8 {
			case 3:
				x[i] *= 1e-15
			case 5:
				x[i] = float32(rng.IntN(3) - 1)
			case 6:
				w[i] *= float32(rng.IntN(2))
			case 7:
				x[i] = 0
			}
		}
		var got, want [3][8]float32
		searchSymAVX2(table, x, w, s.pairs[:3*len(x)+1], got[0][:], got[1][:], got[2][:])
		searchSymTile(table, x, w, s.pairs[:len(x)], want[0][:], want[1][:], want[2][:])
		for i := range got {
			for l := range got[i] {
				if math.Float32bits(got[i][l]) != math.Float32bits(want[i][l]) {
					t.Fatalf("round %d, result %d, lane %d: got %v, want %v", round, i, l, got[i][l], want[i][l])
				}
			}
		}
	}
}

// The bounds of IQ1 need reciprocals that err by 1.5*2^-12 at most.
func TestTileReciprocals(t *testing.T) {
	if !searchByAVX2 {
		t.Skip("UNTESTED: there is no AVX2")
	}
	var b, c [16]float32
	worst := 0.0
	for i := uint32(0); i < 1<<23; i += 16 * 13 {
		for k := range b {
			b[k] = math.Float32frombits(0x3F800000 | i + 13*uint32(k)&(1<<23-1))
		}
		reciprocals(&c, &b)
		for k := range b {
			worst = max(worst, math.Abs(float64(b[k])*float64(c[k])-1))
		}
	}
	t.Logf("largest error 2^-12 times %.3f", worst*0x1p12)
	if worst > 1.5*0x1p-12 {
		t.Errorf("error %g", worst)
	}
}

func reciprocals(c, b *[16]float32) {
	if tilesByAVX512 {
		store16(c[:], load16(b[:]).Reciprocal())
	} else {
		store8(c[:], load8(b[:]).Reciprocal())
		store8(c[8:], load8(b[8:]).Reciprocal())
	}
	clearUpper()
}
