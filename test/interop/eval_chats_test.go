package interop

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ggforge/imatrix"
)

// TestChats compares the importance matrix of ggeval imatrix --chats with that of llama-imatrix --parse-special over the
// text that ggtool render --chats prints, with templates that write BOS and that do not.
func TestChats(t *testing.T) {
	start(t)
	f32 := work + "/f32.gguf"
	ours(t, "ggconv", "--force", "--progress", "none", "--outtype", "f32", "--outfile", root+f32, root+gollama(t))
	text, err := os.ReadFile(root + evalText(t))
	must(t, err)
	var b strings.Builder
	for lines := strings.Split(string(text[:40000]), "\n"); len(lines) > 12; lines = lines[12:] {
		fmt.Fprintf(&b, `{"messages": [{"role": "user", "content": %q}, {"role": "assistant", "content": %q}]}`+"\n",
			strings.ToValidUTF8(lines[0], ""), strings.ToValidUTF8(strings.Join(lines[1:12], "\n"), ""))
	}
	chats, rendered, template, out := work+"/chats.jsonl", work+"/rendered.txt", work+"/t.jinja", work+"/chats.imatrix"
	must(t, os.WriteFile(root+chats, []byte(b.String()), 0o666))
	const turns = "{% for m in messages %}{{ '// ' + m.role + '\n' + m.content + eos_token + '\n' }}{% endfor %}"
	for name, source := range map[string]string{"bos": "{{ bos_token }}" + turns, "no bos": turns} {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile(root+template, []byte(source), 0o666))
			file := work + "/chats.gguf"
			os.Remove(root + file)
			ours(t, "ggtool", "meta", "--template", root+template, "--output", root+file, root+f32)
			must(t, os.WriteFile(root+rendered, []byte(ours(t, "ggtool", "render", "--messages", root+chats, "--chats",
				root+file)), 0o666))
			const chunk, chunks = 128, 30
			ours(t, "ggeval", "imatrix", "--force", "--progress", "none", "-f", root+chats, "--chats", "-c", fmt.Sprint(chunk),
				"--chunks", fmt.Sprint(chunks), "--process-output", "-o", root+out, root+file)
			m, err := imatrix.Open(root + out)
			must(t, err)
			defer m.Close()
			sums := imatrix.NewSums(chunk)
			_, err = sums.Merge(m)
			must(t, err)
			sums.Datasets = []string{rendered}
			sameImportance(t, sums, nil, true, file, rendered, chunk, chunks, "--parse-special")
		})
	}
}
