package vocab

import "ggforge/fault"

// rwkv splits a text into the longest tokens from its start. Texts of tokens are bytes, some of them escaped.
type rwkv struct {
	v    *Vocab
	trie *trie
}

func newRWKV(v *Vocab, r *reader) (kind, error) {
	k := &rwkv{v, newTrie()}
	for id, t := range v.tokens {
		k.trie.add(unescape(t.text), int32(id))
	}
	return k, nil
}

// unescape undoes \t, \n, \r, \xHH and a backslash before any other byte.
func unescape(s string) string {
	b := make([]byte, 0, len(s))
	digit := func(c byte) byte {
		if c >= 'a' {
			return c - 'a' + 10
		}
		return c - '0'
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b = append(b, s[i])
			continue
		}
		if i++; i == len(s) {
			break
		}
		switch s[i] {
		case 't':
			b = append(b, '\t')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 'x':
			if i+2 < len(s) {
				b = append(b, digit(s[i+1])<<4+digit(s[i+2]))
			}
			i += 2
		default:
			b = append(b, s[i])
		}
	}
	return string(b)
}

func (k *rwkv) session() session { return k }

func (k *rwkv) encode(ids []int32, text string, _ bool) ([]int32, error) {
	for len(text) > 0 {
		id, n := k.trie.longest(text)
		if id == none {
			if k.trie.root[text[0]] != 0 || k.v.unk == none {
				return nil, fault.Errorf(fault.Broken, "%s: no token for byte 0x%02X of the text", keyTokens, text[0])
			}
			id, n = k.v.unk, 1
		}
		ids = append(ids, id)
		text = text[n:]
	}
	return ids, nil
}
