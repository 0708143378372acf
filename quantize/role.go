package quantize

import "strings"

// Role is the role of a tensor in its model, as far as recipes use it. Roles are bits, so that a rule can name several.
type Role uint16

// The roles. A fused or compressed value projection counts as a value tensor for some rules, by roleVV.
const (
	RoleOther   Role = 1 << iota // none of the following
	RoleOutput                   // output head; a tied embedding plays this role too
	RoleEmbd                     // token embedding
	RoleQKV                      // query, key and value in one
	RoleKVB                      // second factor of compressed keys and values
	RoleV                        // attention value
	RoleK                        // attention key
	RoleQ                        // attention query
	RoleAttnOut                  // attention output
	RoleUp                       // feed-forward up
	RoleGate                     // feed-forward gate
	RoleDown                     // feed-forward down

	roleVV  = RoleV | RoleQKV | RoleKVB
	roleAny = ^Role(0)
)

// nameTest is a test on a tensor name. Names are compared the way the reference
// compares them: a substring test accepts experts (ffn_down_exps), other
// attention blocks (cross_attn_v) and vision towers (v.blk.0.attn_v) as well,
// and files have to come out the same.
type nameTest struct {
	text  string
	whole bool // the name is text, else text occurs in it
}

func is(text string) nameTest  { return nameTest{text, true} }
func has(text string) nameTest { return nameTest{text, false} }

func (t nameTest) match(name string) bool {
	if t.whole {
		return name == t.text
	}
	return strings.Contains(name, t.text)
}

const (
	outputName   = "output.weight"
	embdName     = "token_embd.weight"
	perLayerEmbd = "per_layer_token_embd.weight"
)

// roleTable gives the role of a tensor name; the first row that matches wins.
var roleTable = []struct {
	test  nameTest
	role  Role
	label string
}{
	{is(outputName), RoleOutput, "output"},
	{is(embdName), RoleEmbd, "token_embd"},
	{is(perLayerEmbd), RoleEmbd, "token_embd"},
	{has("attn_qkv.weight"), RoleQKV, "attn_qkv"},
	{has("attn_kv_b.weight"), RoleKVB, "attn_kv_b"},
	{has("attn_v.weight"), RoleV, "attn_v"},
	{has("attn_k.weight"), RoleK, "attn_k"},
	{has("attn_q.weight"), RoleQ, "attn_q"},
	{has("attn_output.weight"), RoleAttnOut, "attn_output"},
	{has("ffn_up"), RoleUp, "ffn_up"},
	{has("ffn_gate"), RoleGate, "ffn_gate"},
	{has("ffn_down"), RoleDown, "ffn_down"},
}

// roleOf returns the role of the tensor called name.
func roleOf(name string) Role {
	for _, r := range roleTable {
		if r.test.match(name) {
			return r.role
		}
	}
	return RoleOther
}

// String returns the tensor's usual short name ("attn_v"), "other" without a role.
func (r Role) String() string {
	for _, row := range roleTable {
		if row.role == r {
			return row.label
		}
	}
	return "other"
}

// layerOf returns the number n of a name that begins with "blk.<n>", -1 for
// other names.
func layerOf(name string) int64 {
	digits, ok := strings.CutPrefix(name, "blk.")
	if !ok {
		return -1
	}
	n := int64(-1)
	for _, c := range []byte(digits) {
		// A number beyond any layer count ends the reading: names come from the file.
		if c < '0' || c > '9' || n > 1<<31 {
			break
		}
		n = max(n, 0)*10 + int64(c-'0')
	}
	return n
}
