package memory

// compute returns the size of the runtime's compute buffer for a batch of tokens.
func (p *model) compute(tokens int64, caches []*Cache) int64 {
	return p.product("logits", tokens, p.vocab+p.embd, 4)
}
