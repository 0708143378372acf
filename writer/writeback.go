package writer

// writebackBytes is the number of bytes of a file that go to the disk at a time.
const writebackBytes = 8 << 20

// writeback makes the system write the files to the disk while they grow: else it
// would wait until a part of the memory is full of them, or for the sync at the
// end, with the disk idle meanwhile. stop ends it.
func writeback(parts []*partial) (stop func()) {
	more, gone := make(chan *partial, len(parts)), make(chan struct{})
	for _, p := range parts {
		p.more = more
	}
	go func() {
		defer close(gone)
		for p := range more {
			p.startWriteback()
		}
	}()
	return func() {
		for _, p := range parts {
			p.more = nil
		}
		close(more)
		<-gone
	}
}

// startWriteback sends written bytes to the disk. Files grow from front to back except for the blocks that workers are
// writing, so the last bytes are left for the next time. The sync at the end covers the rest.
func (p *partial) startWriteback() {
	end := p.written.Load()/writebackBytes*writebackBytes - writebackBytes
	if end > p.sent {
		p.mu.RLock()
		defer p.mu.RUnlock()
		if p.file != nil {
			startWriteback(p.file, p.sent, end-p.sent)
			p.sent = end
		}
	}
}
