package vocab

// part is a run of bytes that becomes a token; parts merged into the previous one are empty.
type part struct {
	start, size int32 // bytes
	prev, next  int32 // -1 at the ends
	id          int32 // -1: no token or part of a merge
}

// pair is a pair of neighbours that may be merged. It is stale if they no longer have size bytes together.
type pair struct {
	rank        float64 // lower ones first
	left, right int32
	size        int32
	id          int32 // of the result
}

func (a *pair) before(b *pair) bool { return a.rank < b.rank || a.rank == b.rank && a.left < b.left }

// merger merges the parts of a text, the pair of lowest rank first and of equal ones the leftmost, in O(n log n). Its
// memory is reused for the next text.
type merger struct {
	parts []part
	queue []pair
	// join returns the rank and the id of two merged parts, if they merge.
	join func(a, b *part) (rank float64, id int32, ok bool)
}

func (m *merger) reset() { m.parts, m.queue = m.parts[:0], m.queue[:0] }

// add appends a part.
func (m *merger) add(start, size int, id int32) {
	n := int32(len(m.parts))
	if n > 0 {
		m.parts[n-1].next = n
	}
	m.parts = append(m.parts, part{int32(start), int32(size), n - 1, -1, id})
}

func (m *merger) offer(left, right int32) {
	if left < 0 || right < 0 {
		return
	}
	a, b := &m.parts[left], &m.parts[right]
	if rank, id, ok := m.join(a, b); ok {
		m.queue = append(m.queue, pair{rank, left, right, a.size + b.size, id})
		for i := len(m.queue) - 1; i > 0; {
			up := (i - 1) / 2
			if !m.queue[i].before(&m.queue[up]) {
				break
			}
			m.queue[i], m.queue[up] = m.queue[up], m.queue[i]
			i = up
		}
	}
}

// pop removes the first pair of the queue.
func (m *merger) pop() pair {
	top, n := m.queue[0], len(m.queue)-1
	m.queue[0] = m.queue[n]
	m.queue = m.queue[:n]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < n; child++ {
			if m.queue[child].before(&m.queue[least]) {
				least = child
			}
		}
		if least == i {
			return top
		}
		m.queue[i], m.queue[least] = m.queue[least], m.queue[i]
		i = least
	}
}

func (m *merger) merge() {
	for i := 1; i < len(m.parts); i++ {
		m.offer(int32(i-1), int32(i))
	}
	for len(m.queue) > 0 {
		p := m.pop()
		a, b := &m.parts[p.left], &m.parts[p.right]
		if a.size == 0 || b.size == 0 || a.size+b.size != p.size {
			continue
		}
		a.size, a.id, a.next = p.size, p.id, b.next
		b.size = 0
		if b.next >= 0 {
			m.parts[b.next].prev = p.left
		}
		m.offer(a.prev, p.left)
		m.offer(p.left, a.next)
	}
}

// memo caches the ids of short pieces during one text.
type memo struct {
	at  map[string][2]int32 // start and end in ids
	ids []int32
}

const (
	memoPiece  = 48      // longer pieces are not remembered
	memoPieces = 1 << 17 // largest number of pieces
)

func (m *memo) get(piece string) ([]int32, bool) {
	if len(piece) > memoPiece {
		return nil, false
	}
	at, ok := m.at[piece]
	return m.ids[at[0]:at[1]], ok
}

func (m *memo) put(piece string, ids []int32) {
	if len(piece) > memoPiece || len(m.at) >= memoPieces {
		return
	}
	if m.at == nil {
		m.at = map[string][2]int32{}
	}
	start := int32(len(m.ids))
	m.ids = append(m.ids, ids...)
	m.at[piece] = [2]int32{start, int32(len(m.ids))}
}
