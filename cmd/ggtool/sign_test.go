package main

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ggforge/internal/io/disk"
	"ggforge/publish/sign/signtest"
)

// TestSignVerb signs folders and verifies them: what is printed, and exit codes.
func TestSignVerb(t *testing.T) {
	key, public := signtest.Keys(t)
	_, other := signtest.Keys(t)
	dir := filepath.Join(t.TempDir(), "out")
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for name, text := range map[string]string{"a.bin": "a", "sub/b.bin": "b", "README.md": "card", ".env": "private",
		".ggtool-release/push/x": "x"} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		put(t, at(name), text)
	}
	made, check := expect(t, "sign"), expect(t, "verify")
	made(0, "2 files signed; SHA-256 of the public key: ", "--key", key, dir)
	made(2, "use --force", "--key", key, dir)
	before, err := os.ReadFile(at("model.sig"))
	if err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GGTOOL_TEST_KEY", string(secret))
	var r signResult
	if err := json.Unmarshal([]byte(made(0, "", "--key", "env://GGTOOL_TEST_KEY", "--force", "--json", dir)),
		&r); err != nil || r.Signature != at("model.sig") || len(r.Files) != 2 || len(r.KeySHA256) != 64 ||
		!slices.Equal(r.Unsigned, []string{".cache", ".env", ".ggtool-release", "README.md", "model.sig"}) {
		t.Errorf("%v: %+v", err, r)
	}
	if after, err := os.ReadFile(at("model.sig")); err != nil || string(after) != string(before) {
		t.Errorf("%v: another signature of the same files", err)
	}

	// verified
	out := check(0, "signature of 2 files; SHA-256 of the public key: "+r.KeySHA256, "--public-key", public, dir)
	for _, want := range []string{"not signed: .env, .ggtool-release, README.md", at("a.bin") + ": whole"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	check(0, "a.bin: whole", "--signature", at("model.sig"), "--public-key", public)
	out = check(0, "b.bin: whole", "--signature", at("model.sig"), "--public-key", public, at("sub/b.bin"))
	if strings.Contains(out, "a.bin") {
		t.Error(out)
	}
	check(5, "another key", "--public-key", other, dir)
	check(2, "want the public one", "--public-key", key, dir)
	check(2, "want the public key", "--certificates", chainFile(t, key), "--signature",
		filepath.Join("..", "..", "publish", "sign", "testdata", "P-256", "model", "model.sig"))
	check(2, "goes with", "--signature", at("model.sig"))
	check(2, "want one of them", "--public-key", public, "--sums", "x")
	check(2, "want a folder", "--public-key", public, at("a.bin"))
	check(2, "is not in the folder", "--public-key", public, "--signature", at("model.sig"), public)
	check(3, "is not signed", "--public-key", public, "--signature", at("model.sig"), at("README.md"))

	// changed
	put(t, at("README.md"), "another card")
	check(0, "", "--public-key", public, dir)
	put(t, at("more"), "more")
	put(t, at("sub/b.bin"), "c")
	if err := os.Remove(at("a.bin")); err != nil {
		t.Fatal(err)
	}
	out = check(3, "3 of 3 files are broken", "--public-key", public, dir)
	for _, want := range []string{"a.bin: is missing", "more: is not signed", "b.bin: is not as it was signed"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	var v verifyResult
	text, _, _ := strings.Cut(check(3, "", "--json", "--public-key", public, dir), "\n}")
	if err := json.Unmarshal([]byte(text+"}"), &v); err != nil ||
		len(v.Files) != 3 || len(v.Signatures) != 1 || v.Signatures[0].KeySHA256 != r.KeySHA256 {
		t.Errorf("%v: %+v", err, v)
	}
	put(t, at("model.sig"), "{}")
	check(3, "mediaType is missing", "--public-key", public, dir)

	// elsewhere, with a certificate
	chain := chainFile(t, key)
	sig := filepath.Join(t.TempDir(), "x.sig")
	made(0, "3 files signed", "--key", key, "--certificate", chain, "-o", sig, dir)
	check(0, "certificate of CN=me", "--certificates", chain, "--signature", sig, dir)

	// refused
	made(1, "nokey", "--key", "nokey", "--certificate", chain, dir)
	made(5, "the private key is in the folder", "--key", at("key.pem"), dir)
	made(2, "is not set", "--key", "env://GGTOOL_TEST_NO_KEY", "-o", sig+"2", dir)
	if out := made(2, "given by value", "--key", string(secret), dir); strings.Contains(out, string(secret[40:60])) {
		t.Error(out)
	}
	put(t, at("SHA256SUMS"), strings.Repeat("0", 64)+"  more\n")
	made(3, "is not what its lists have", "--key", key, "--force", dir)
	if runtime.GOOS != "windows" {
		if err := os.Symlink(at("more"), at("link")); err != nil {
			t.Fatal(err)
		}
		made(5, "link: is a link", "--key", key, "--force", dir)
	}
}

// chainFile writes the certificate of a key, which is its own issuer.
func chainFile(t *testing.T, key string) string {
	t.Helper()
	data, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := pem.Decode(data)
	private, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "me"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, c, c, private.(*ecdsa.PrivateKey).Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "chain.pem")
	put(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return path
}

// TestSignRelease signs the folder of a release: its model is not hashed, only identified, and one that is not finished
// is refused.
func TestSignRelease(t *testing.T) {
	key, public := signtest.Keys(t)
	out := filepath.Join(t.TempDir(), "out")
	expect(t, "release")(0, "", "--source", "../../test/testdata/gollama", "--output", out, "--type", "Q8_0")
	var opened atomic.Int64
	remove := disk.Install(func(c disk.Call, do func(int) (int, error)) (int, error) {
		if c.Op == disk.OpOpen && strings.HasSuffix(c.Path, ".gguf") {
			opened.Add(1)
		}
		return do(c.N)
	})
	expect(t, "sign")(0, "3 files signed", "--key", key, out)
	remove()
	expect(t, "verify")(0, "signature of 3 files", "--public-key", public, out)
	if err := os.Remove(filepath.Join(out, "manifest.json")); err != nil {
		t.Fatal(err)
	}
	expect(t, "sign")(7, "the release is not finished", "--key", key, "--force", out)
	if n := opened.Load(); n != 1 {
		t.Errorf("the model was opened %d times, want once, for its identity", n)
	}
}
