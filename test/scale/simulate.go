package main

import (
	"container/heap"
	"math"
	"math/rand/v2"

	"ggforge/writer"
)

// world has the figures of machines, and of what they read from and write to. Rates are in bytes and requests in a
// second.
type world struct {
	name    string
	objects bool    // an object store; else a file system that all machines share
	cpus    float64 // of a machine
	link    float64 // of a machine, each way
	stream  float64 // of one request
	latency float64 // seconds until a request is answered
	busy    float64 // share of requests that are answered by 503, and repeated after a second
	read    float64 // of all machines together
	write   float64
	slow    float64 // share of machines with a tenth of link and stream
	kills   float64 // seconds between two kills of one machine, in the mean; 0 for none
	back    float64 // seconds until another machine takes over
}

const (
	rangeBytes = 8 << 20  // of a request that reads: internal/io/fetch
	readsAhead = 8        // requests at a time
	sendsAhead = 4        // parts of an upload at a time: internal/io/bucket
	bufferRead = 16       // ranges that are read and not used yet
	unitWork   = 16 << 20 // elements of a unit of the simulation, which is read, encoded and written as a whole
)

// unit is a run of rows.
type unit struct{ read, written, work float64 }

// unitsOf cuts a share.
func unitsOf(s writer.Share) (list []unit) {
	for _, r := range s {
		n := (r.Elements + unitWork - 1) / unitWork
		for range n {
			list = append(list, unit{float64(r.Read) / float64(n), float64(r.Written) / float64(n), float64(r.Work) / 1e12 / float64(n)})
		}
	}
	return list
}

// machine is a worker with a part.
type machine struct {
	units             []unit
	slow              float64 // 1 or 0.1
	life              int     // how often it was killed: events of earlier lives do not count
	read, made, sent  int     // units
	reading, encoding bool
	sending           int        // units of what is being sent, 0 for none
	gathered          float64    // bytes that are made, and neither sent nor being sent
	begun             [2]float64 // of the transfer that is under way: reading and sending
	moves             [2]float64 // its bytes
	ends              [2]float64
	alive             bool
	end               float64 // when its part was done, 0 before
	up                float64 // seconds that it ran
	since             float64
	readBytes         float64
	sentBytes         float64
	gets, puts        int64
	pieces            float64 // parts of the upload that are sent, or begun
}

type event struct {
	at      float64
	what    int
	machine int
	life    int
}

const (
	started = iota
	readUnit
	madeUnit
	sentPiece
	killed
)

// queue is a heap of events.
type queue []event

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

// outcome is what a simulation found.
type outcome struct {
	seconds              float64 // until the last part is done
	finish               float64 // of --finish, after that
	machineHours         float64
	kills                int
	readMean, readMost   float64 // bytes of a worker
	sentMean, sentMost   float64
	gets, puts           int64
	readShare, sentShare float64 // bytes of all, by those of a run without kills
}

// sim is a simulation.
type sim struct {
	world
	piece    float64 // bytes that are sent together
	start    float64 // seconds from the start of a process to its first read
	headers  int64   // requests for them
	machines []*machine
	events   queue
	now      float64
	active   [2]int // transfers: readers and senders
	random   *rand.Rand
	kills    int
}

func (s *sim) add(after float64, what, i int) {
	heap.Push(&s.events, event{s.now + after, what, i, s.machines[i].life})
}

// transfer returns how long bytes take in so many requests, at most ahead at a time; the rate is that of the moment at which it
// begins. way is 0 for reading and 1 for writing.
func (s *sim) transfer(m *machine, bytes float64, requests int64, ahead, way int) float64 {
	all := [2]float64{s.read, s.world.write}[way]
	rate := min(s.stream*float64(min(requests, int64(ahead)))*m.slow, s.link*m.slow, all/float64(s.active[way]+1))
	again := int64(0)
	for range requests {
		if s.busy > 0 && s.random.Float64() < s.busy {
			again++
		}
	}
	if way == 0 {
		m.gets += requests + again
	} else {
		m.puts += requests + again
	}
	rounds := math.Ceil(float64(requests) / float64(ahead))
	took := rounds*s.latency + bytes/rate + float64(again)
	s.active[way]++
	m.begun[way], m.moves[way], m.ends[way] = s.now, bytes, s.now+took
	return took
}

// ended counts what a transfer has moved, all of it or, after a kill, the share that came.
func (s *sim) ended(m *machine, way int) {
	s.active[way]--
	share := 1.0
	if m.ends[way] > m.begun[way] {
		share = min(1, (s.now-m.begun[way])/(m.ends[way]-m.begun[way]))
	}
	if way == 0 {
		m.readBytes += share * m.moves[way]
	} else {
		m.sentBytes += share * m.moves[way]
	}
}

// step lets a machine begin what it can.
func (s *sim) step(i int) {
	m := s.machines[i]
	if !m.alive {
		return
	}
	ahead := 0.0
	for _, u := range m.units[m.made:m.read] {
		ahead += u.read
	}
	if !m.reading && m.read < len(m.units) && ahead < bufferRead*rangeBytes {
		m.reading = true
		u := m.units[m.read]
		s.add(s.transfer(m, u.read, int64(math.Ceil(u.read/rangeBytes)), readsAhead, 0), readUnit, i)
	}
	// What is made waits in memory: no more than what is being sent at once, and as much again.
	if !m.encoding && m.made < m.read && m.gathered < max(2*s.piece*sendsAhead, 1) {
		m.encoding = true
		s.add(m.units[m.made].work/s.cpus, madeUnit, i)
	}
	if last := m.made == len(m.units); m.sending == 0 && m.made > m.sent && (m.gathered >= s.piece || last) {
		n, bytes := 0, 0.0
		for _, u := range m.units[m.sent:m.made] {
			if bytes >= s.piece*sendsAhead && bytes > 0 {
				break
			}
			n, bytes = n+1, bytes+u.written
		}
		m.sending = n
		m.gathered -= bytes
		requests := int64(1)
		if s.objects {
			requests = int64(math.Ceil(bytes / s.piece))
		}
		s.add(s.transfer(m, bytes, requests, sendsAhead, 1), sentPiece, i)
		if s.objects { // units end where they like: pieces count by their bytes
			m.puts -= requests
			m.pieces += bytes / s.piece
		}
	}
}

func (s *sim) handle(e event) {
	m := s.machines[e.machine]
	if e.life != m.life {
		return
	}
	switch e.what {
	case started:
		m.alive, m.read, m.made, m.gathered, m.since = true, m.sent, m.sent, 0, s.now-s.start
		m.gets += s.headers
		if s.world.kills > 0 {
			s.add(s.random.ExpFloat64()*s.world.kills, killed, e.machine)
		}
	case readUnit:
		m.reading = false
		s.ended(m, 0)
		m.read++
	case madeUnit:
		m.encoding = false
		m.gathered += m.units[m.made].written
		m.made++
	case sentPiece:
		s.ended(m, 1)
		m.sent += m.sending
		if m.sending = 0; m.sent == len(m.units) {
			m.alive, m.end = false, s.now
			m.up += s.now - m.since
			m.life++ // nobody kills it any more
			return
		}
	case killed:
		s.kills++
		if m.reading {
			s.ended(m, 0)
		}
		if m.sending > 0 {
			s.ended(m, 1)
		}
		m.alive, m.reading, m.encoding, m.sending = false, false, false, 0
		m.up += s.now - m.since
		m.life++
		s.add(s.back+s.start, started, e.machine)
		return
	}
	s.step(e.machine)
}

// simulate runs the parts of shares, one on each machine. size is that of the output, piece the length of the parts of
// its upload; start is how long a process plans, files how many have headers.
func simulate(w world, shares []writer.Share, size, piece int64, start float64, files int) *outcome {
	s := &sim{world: w, piece: float64(piece), start: start, headers: int64(files), random: rand.New(rand.NewPCG(1, 2))}
	if !w.objects {
		s.piece, s.headers = 1, 0 // each unit is written when it is made
	}
	need, out := [2]float64{}, &outcome{}
	for i, share := range shares {
		m := &machine{units: unitsOf(share), slow: 1}
		if float64(i%100) < 100*w.slow {
			m.slow = 0.1
		}
		for _, u := range m.units {
			need[0], need[1] = need[0]+u.read, need[1]+u.written
		}
		s.machines = append(s.machines, m)
		s.add(start, started, i)
	}
	for len(s.events) > 0 {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		s.handle(e)
	}
	n := float64(len(s.machines))
	var read, sent float64
	for _, m := range s.machines {
		out.seconds = max(out.seconds, m.end)
		out.machineHours += m.up / 3600
		out.readMost, out.sentMost = max(out.readMost, m.readBytes), max(out.sentMost, m.sentBytes)
		out.gets, out.puts = out.gets+m.gets, out.puts+m.puts+int64(math.Ceil(m.pieces))
		read, sent = read+m.readBytes, sent+m.sentBytes
	}
	out.kills, out.readMean, out.sentMean = s.kills, read/n, sent/n
	out.readShare, out.sentShare = read/need[0], sent/need[1]
	// With objects the store's list of parts is compared, a thousand in an answer; files are read once, by one machine.
	out.finish = start + w.latency*(float64(size)/s.piece/1000+2)
	if !w.objects {
		out.finish = start + float64(size)/min(w.link, w.read)
	}
	out.machineHours += out.finish / 3600
	return out
}
