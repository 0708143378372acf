package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSignatures signs folders with ggtool and verifies them with another implementation, oracle/omsverify.py in
// ORACLE_SHARED, and the reverse with omssign.py; both refuse changed folders.
func TestSignatures(t *testing.T) {
	script := filepath.Join(shared, "oracle", "omsverify.py")
	if _, err := os.Stat(script); err != nil || bin == "" {
		t.Skip("needs oracle/omsverify.py in ORACLE_SHARED: run make interop")
	}
	run := func(ok bool, name string, args ...string) {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		if (err == nil) != ok {
			t.Errorf("%s %q: %v: %s", name, args, err, out)
		}
	}
	tmp := t.TempDir()
	at := func(name string) string { return filepath.Join(tmp, name) }
	tool := filepath.Join(bin, "ggtool")
	openssl := func(args ...string) { t.Helper(); run(true, "openssl", args...) }
	for _, curve := range []string{"P-256", "P-384", "P-521"} {
		key, public, chain, dir := at(curve+".pem"), at(curve+".pub"), at(curve+".crt"), at(curve)
		openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:"+curve, "-out", key)
		openssl("pkey", "-in", key, "-pubout", "-out", public)
		openssl("req", "-x509", "-new", "-key", key, "-subj", "/CN=me", "-days", "2", "-out", chain,
			"-addext", "keyUsage=critical,digitalSignature", "-addext", "extendedKeyUsage=codeSigning")
		for name, text := range map[string]string{"a/b.bin": "b", "a.txt": "", "a+b": "c", "README.md": "card", "ä": "d"} {
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
		}
		ours := func(how ...string) []string { return append([]string{"verify", dir}, how...) }
		theirs := func(how ...string) []string { return append([]string{script, dir}, how...) }
		signature := filepath.Join(dir, "model.sig")
		for _, c := range []struct{ sign, ours, theirs []string }{
			{nil, []string{"--public-key", public}, []string{"--public-key", public}},
			{[]string{"--certificate", chain}, []string{"--certificates", chain}, []string{"--certificate-chain", chain}},
		} {
			args := append([]string{"sign", dir, "--key", key, "--force"}, c.sign...)
			run(true, tool, args...)
			run(true, "python3", append(theirs(c.theirs...), "--strict")...)
			run(true, tool, ours(c.ours...)...)

			// made by another signer
			must(t, os.Remove(signature))
			run(true, "python3", append([]string{"omssign.py", dir, key}, c.sign[min(1, len(c.sign)):]...)...)
			run(true, tool, ours(c.ours...)...)

			// edited cards are fine, anything else is not
			run(true, tool, args...)
			must(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte("edited "+strings.Join(c.sign, "")), 0o666))
			run(true, tool, ours(c.ours...)...)
			run(true, "python3", theirs(c.theirs...)...)
			more := filepath.Join(dir, "more")
			must(t, os.WriteFile(more, nil, 0o666))
			run(false, tool, ours(c.ours...)...)
			run(false, "python3", theirs(c.theirs...)...)
			must(t, os.Remove(more))
		}
		if curve != "P-256" { // another's key
			run(false, tool, ours("--public-key", at("P-256.pub"))...)
		}
	}
}
