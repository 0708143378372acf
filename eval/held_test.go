package eval

import (
	"context"
	"sync"
	"testing"

	"ggforge/model"
	"ggforge/rows"
)

// counted is a tensor with expensive rows that counts how often each row is made.
type counted struct {
	rows.Source
	mu sync.Mutex
	n  []int
}

func (c *counted) Cost() int64 { return 10_000 }

func (c *counted) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	c.mu.Lock()
	for i := a; i < b; i++ {
		c.n[i]++
	}
	c.mu.Unlock()
	raw, err := c.Source.Raw(buf, a, b)
	*buf = append((*buf)[:0], raw...) // a copy, as from a source that computes its rows
	return *buf, err
}

// TestReadOnce checks that expensive rows are made once for a text of many
// blocks, and that figures do not change.
func TestReadOnce(t *testing.T) {
	defer func(n int) { tokensPerBlock = n }(tokensPerBlock)
	tokensPerBlock = 100
	const chunk, chunks = 50, 9
	for _, experts := range []int{0, 3} {
		var all []*counted
		change := func(m *model.Model) {
			for i := range m.Tensors {
				if x := &m.Tensors[i]; len(x.NE) > 1 {
					c := &counted{Source: x.Source, n: make([]int, x.Elements()/x.NE[0])}
					all = append(all, c)
					x.Source = c
				}
			}
		}
		var sums [2]string
		for i, sh := range []shape{{experts: experts}, {experts: experts, change: change}} {
			m, err := New(made("llama", sh))
			if err != nil {
				t.Fatal(err)
			}
			p, err := m.Perplexity(context.Background(), Run{Tokens: text(chunk * chunks), Chunk: chunk, Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			sums[i] = sum(p)
		}
		if sums[0] != sums[1] {
			t.Errorf("%d experts: other losses where rows are held", experts)
		}
		for i, c := range all {
			most := 0
			for _, n := range c.n {
				most = max(most, n)
			}
			if most != 1 {
				t.Errorf("%d experts, tensor %d: a row was made %d times", experts, i, most)
			}
		}
	}
}

// TestHeldMemory checks that memory of rows that were dropped is used again.
func TestHeldMemory(t *testing.T) {
	s := &stream{workspace: newWorkspace(1)}
	a := s.bytes(100)
	s.heldRows = append(s.heldRows, &heldRows{data: a})
	s.dropHeld()
	if b := s.bytes(60); &b[0] != &a[0] || len(b) != 60 {
		t.Error("other memory for fewer bytes")
	} else {
		s.heldRows = append(s.heldRows, &heldRows{data: b})
	}
	s.dropHeld()
	if c := s.bytes(200); len(c) != 200 || len(s.freeBytes) != 0 {
		t.Errorf("%d bytes, %d pieces are left", len(c), len(s.freeBytes))
	}
}
