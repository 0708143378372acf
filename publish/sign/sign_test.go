package sign

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"ggforge/fault"
	"ggforge/model/digest"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func encoded(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// newKey returns a key on a curve, and its PEM as PKCS #8.
func newKey(t *testing.T, c elliptic.Curve) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(c, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, encoded("PRIVATE KEY", der)
}

// signer returns a signer with a new key, and the path of the public key.
func signer(t *testing.T, c elliptic.Curve) (*Signer, string) {
	t.Helper()
	_, text := newKey(t, c)
	dir := t.TempDir()
	s, err := ReadSigner(write(t, filepath.Join(dir, "key.pem"), text), "")
	if err != nil {
		t.Fatal(err)
	}
	return s, write(t, filepath.Join(dir, "public.pem"), string(s.PublicKey))
}

// ignored are the paths that the folders of these tests leave out.
var ignored = []string{".ggtool-release", ".cache", "README.md", ModelName}

// signed signs a folder and returns the signature.
func signed(t *testing.T, s *Signer, dir string) []byte {
	t.Helper()
	files, _, err := Files(context.Background(), dir, ignored, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	statement, err := Model("m", files, ignored)
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.Sign(statement)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ModelName), string(data))
	return data
}

// verified verifies a signature with a public key.
func verified(path, public string) (*Signed, error) {
	b, err := Read(path)
	if err != nil {
		return nil, err
	}
	trust, err := TrustKey(public)
	if err != nil {
		return nil, err
	}
	return b.Verify(trust)
}

// TestVectors verifies signatures that another program has made (test/interop/omsvectors.sh).
func TestVectors(t *testing.T) {
	for _, name := range []string{"P-256", "P-384", "P-521", "certificates"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", name, "model")
			b, err := Read(filepath.Join(dir, ModelName))
			if err != nil {
				t.Fatal(err)
			}
			trust := func(name string) *Trust {
				var trust *Trust
				var err error
				if name == "certificates" {
					trust, err = TrustRoots("testdata/certificates/roots.pem")
				} else {
					trust, err = TrustKey(filepath.Join("testdata", name, "public.pem"))
				}
				if err != nil {
					t.Fatal(err)
				}
				return trust
			}
			s, err := b.Verify(trust(name))
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != "model" || len(s.KeySHA256) != 64 || (s.Certificate != "") != (name == "certificates") {
				t.Errorf("%+v", s)
			}
			if found, err := s.Compare(context.Background(), dir, nil, Options{}); err != nil || len(found) > 0 {
				t.Errorf("%v, %v", found, err)
			}
			for _, other := range []string{"P-256", "P-384", "P-521", "certificates"} {
				_, err := b.Verify(trust(other))
				want := fault.Refused
				if (name == "certificates") != (other == "certificates") {
					want = fault.Usage
				}
				if other != name && !errors.Is(err, want) {
					t.Errorf("with what %s trusts: %v", other, err)
				}
			}
		})
	}
}

// TestSign signs a folder, changes it in many ways, and verifies it.
func TestSign(t *testing.T) {
	for _, c := range curves {
		s, public := signer(t, c)
		dir := filepath.Join(t.TempDir(), "m")
		at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
		write(t, at("model.gguf"), "weights")
		write(t, at("a/b"), "b")
		write(t, at("a.txt"), "")
		write(t, at("README.md"), "card")
		write(t, at(".ggtool-release/state"), "state")
		data := signed(t, s, dir)
		if again := signed(t, s, dir); !bytes.Equal(data, again) {
			t.Errorf("%s: the second signature differs:\n%s\n%s", c.Params().Name, data, again)
		}
		compare := func(only []string, want ...string) {
			t.Helper()
			v, err := verified(at(ModelName), public)
			if err != nil {
				t.Fatal(err)
			}
			if v.KeySHA256 != s.KeySHA256 || v.PredicateType != ModelPredicate || len(v.Files) != 3 {
				t.Errorf("%+v", v)
			}
			found, err := v.Compare(context.Background(), dir, only, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				got = append(got, f.File+" "+strings.SplitN(f.Text, ":", 2)[0])
			}
			if !slices.Equal(got, want) {
				t.Errorf("findings %q, want %q", got, want)
			}
		}
		compare(nil)
		write(t, at("README.md"), "another card")
		write(t, at(".gitattributes"), "*.gguf")
		write(t, at(".cache/huggingface/x"), "x")
		if err := os.RemoveAll(at(".ggtool-release")); err != nil {
			t.Fatal(err)
		}
		compare(nil)
		write(t, at("sub/.cache/x"), "x")
		write(t, at("sub/README.md"), "x")
		write(t, at("a/b"), "c")
		if err := os.Remove(at("model.gguf")); err != nil {
			t.Fatal(err)
		}
		compare(nil, "a/b is not as it was signed", "model.gguf is missing", "sub/.cache/x is not signed",
			"sub/README.md is not signed")
		compare([]string{"a.txt"})
		compare([]string{"a/b", "none"}, "a/b is not as it was signed")
		if runtime.GOOS == "windows" {
			continue
		}
		write(t, at("a/b"), "b")
		if err := os.RemoveAll(at("sub")); err != nil {
			t.Fatal(err)
		}
		elsewhere := write(t, filepath.Join(t.TempDir(), "m"), "weights")
		if err := os.Symlink(elsewhere, at("model.gguf")); err != nil {
			t.Fatal(err)
		}
		compare(nil, "model.gguf is a link, or no file")
		_, _, err := Files(context.Background(), dir, ignored, Options{})
		if !errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), "model.gguf: is a link") {
			t.Errorf("a link: %v", err)
		}
		if err := os.Rename(at("a"), at("other")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at("other"), at("a")); err != nil {
			t.Fatal(err)
		}
		compare([]string{"a/b"}, "a is a link, or no file", "a/b is missing")
	}
}

// TestKnownSums signs a folder whose sums are known: no file is read.
func TestKnownSums(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x"), "x")
	sum := strings.Repeat("ab", 32)
	var done, total int64
	files, _, err := Files(context.Background(), dir, nil, Options{
		Sum:      func(_ context.Context, name string) (string, error) { return sum, nil },
		Progress: func(d, n int64) { done, total = d, n }})
	if want := (digest.File{Name: "x", Bytes: 1, SHA256: sum}); err != nil || len(files) != 1 || files[0] != want ||
		done != 1 || total != 1 {
		t.Errorf("%v, %v, %d of %d", files, err, done, total)
	}
	if _, _, err := Files(context.Background(), t.TempDir(), nil, Options{}); !errors.Is(err, fault.Usage) {
		t.Errorf("an empty folder: %v", err)
	}
	if _, _, err := Files(context.Background(), filepath.Join(dir, "x"), nil, Options{}); !errors.Is(err, fault.Usage) {
		t.Errorf("a file: %v", err)
	}
}

// TestPrivate leaves files out of a signature.
func TestPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	for _, name := range []string{"x", "x.partial", ".env", "a/.git/y", "a/z", "README.md", "a/README.md"} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), "")
	}
	statement, files, out, err := Folder(context.Background(), dir, []string{"README.md"},
		Options{Private: func(base string) bool { return base[0] == '.' || strings.HasSuffix(base, ".partial") }})
	if err != nil || len(files) != 3 || !slices.Equal(out, []string{"README.md", ".env", "a/.git"}) {
		t.Fatalf("%v, %q, %v", files, out, err)
	}
	s, err := parseStatement(statement)
	if err != nil || s.Name != "folder" || !slices.Equal(s.Ignored, []string{".env", ".git", ".gitattributes", ".github",
		".gitignore", "README.md", "a/.git"}) {
		t.Fatalf("%+v, %v", s, err)
	}
	found, err := s.Compare(context.Background(), dir, nil, Options{})
	if err != nil || len(found) != 1 || found[0] != (Finding{"x.partial", "is not signed"}) {
		t.Errorf("%v, %v", found, err)
	}
}

// TestKeys reads keys of other kinds and files that are not keys.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	key, pkcs8 := newKey(t, elliptic.P256())
	sec1, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	small, text224 := newKey(t, elliptic.P224())
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edDER, err := x509.MarshalPKCS8PrivateKey(ed)
	if err != nil {
		t.Fatal(err)
	}
	pub224, err := x509.MarshalPKIXPublicKey(&small.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	secret := base64.StdEncoding.EncodeToString(sec1)[40:80]
	for _, c := range []struct {
		name, text string
		kind       error
		want       string
	}{
		{"sec1", encoded("EC PARAMETERS", []byte{6, 0}) + encoded("EC PRIVATE KEY", sec1), nil, ""},
		{"pkcs8", "some text\n" + pkcs8, nil, ""},
		{"encrypted", encoded("ENCRYPTED PRIVATE KEY", sec1), fault.Unsupported, "-nocrypt"},
		{"encrypted sec1", "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n" +
			base64.StdEncoding.EncodeToString(sec1) + "\n-----END EC PRIVATE KEY-----\n", fault.Unsupported, "-nocrypt"},
		{"ed25519", encoded("PRIVATE KEY", edDER), fault.Unsupported, "P-256"},
		{"p224", text224, fault.Unsupported, "P-256"},
		{"rsa", encoded("RSA PRIVATE KEY", sec1), fault.Unsupported, "P-256"},
		{"garbled", encoded("PRIVATE KEY", sec1[:50]), fault.Usage, "cannot be read"},
		{"two", pkcs8 + pkcs8, fault.Usage, "more than one"},
		{"none", "nothing", fault.Usage, "no private key"},
	} {
		path := write(t, filepath.Join(dir, "key"), c.text)
		s, err := ReadSigner(path, "")
		if !errors.Is(err, c.kind) || err != nil && (!strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), secret)) {
			t.Errorf("%s: %v", c.name, err)
		}
		t.Setenv("GGFORGE_TEST_KEY", c.text)
		other, err := ReadSigner("env://GGFORGE_TEST_KEY", "")
		if (err == nil) != (s != nil) || s != nil && s.KeySHA256 != other.KeySHA256 {
			t.Errorf("%s by a variable: %v", c.name, err)
		}
	}
	for _, name := range []string{"env://GGFORGE_NO_KEY", pkcs8, strings.ReplaceAll(pkcs8, "\n", "")} {
		_, err := ReadSigner(name, "")
		if !errors.Is(err, fault.Usage) || strings.Contains(err.Error(), pkcs8[40:60]) {
			t.Errorf("%v", err)
		}
	}
	for text, kind := range map[string]error{"": fault.Usage, pkcs8: fault.Usage, encoded("PUBLIC KEY", sec1): fault.Usage,
		encoded("PUBLIC KEY", pub224): fault.Unsupported} {
		if _, err := TrustKey(write(t, filepath.Join(dir, "public"), text)); !errors.Is(err, kind) {
			t.Errorf("public key %.20q: %v", text, err)
		}
	}
}

// authority issues certificates for a test.
type authority struct {
	*testing.T
	serial int64
}

// issue returns a certificate and its key; from is the issuer, nil for the certificate itself.
func (a *authority) issue(name string, from *x509.Certificate, by *ecdsa.PrivateKey,
	change func(*x509.Certificate)) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.Helper()
	a.serial++
	key, _ := newKey(a.T, elliptic.P256())
	c := &x509.Certificate{SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		IsCA: true, KeyUsage: x509.KeyUsageCertSign}
	if change != nil {
		change(c)
	}
	if from == nil {
		from, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, from, &key.PublicKey, by)
	if err != nil {
		a.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		a.Fatal(err)
	}
	return c, key
}

// TestCertificates signs with chains of certificates, good and bad ones.
func TestCertificates(t *testing.T) {
	a := &authority{T: t}
	dir := t.TempDir()
	pemOf := func(list ...*x509.Certificate) (text string) {
		for _, c := range list {
			text += encoded("CERTIFICATE", c.Raw)
		}
		return text
	}
	root, rootKey := a.issue("root", nil, nil, nil)
	other, _ := a.issue("root", nil, nil, nil) // of the same name
	issuer, issuerKey := a.issue("issuer", root, rootKey, nil)
	trust := func(c ...*x509.Certificate) *Trust {
		trust, err := TrustRoots(write(t, filepath.Join(dir, "roots.pem"), pemOf(c...)))
		if err != nil {
			t.Fatal(err)
		}
		return trust
	}
	statement, err := Model("m", []digest.File{{Name: "x", SHA256: strings.Repeat("00", 32)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name              string
		change            func(*x509.Certificate)
		read, sign, check error // the errors
	}{
		{name: "good", change: func(*x509.Certificate) {}},
		{name: "code signing", change: func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
		}},
		{name: "servers only", read: fault.Refused, change: func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}},
		{name: "no signatures", read: fault.Refused, change: func(c *x509.Certificate) {
			c.KeyUsage = x509.KeyUsageKeyEncipherment
		}},
		{name: "no usages", read: fault.Refused, change: func(c *x509.Certificate) { c.KeyUsage = 0 }},
		{name: "expired", sign: fault.Refused, check: fault.Refused, change: func(c *x509.Certificate) {
			c.NotAfter = time.Now().Add(-time.Minute)
		}},
	} {
		leaf, key := a.issue("leaf", issuer, issuerKey, func(x *x509.Certificate) {
			x.IsCA, x.KeyUsage = false, x509.KeyUsageDigitalSignature
			c.change(x)
		})
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		keyPath := write(t, filepath.Join(dir, "key.pem"), encoded("PRIVATE KEY", der))
		chainPath := write(t, filepath.Join(dir, "chain.pem"), pemOf(leaf, issuer))
		s, err := ReadSigner(keyPath, chainPath)
		if c.read != nil {
			if !errors.Is(err, c.read) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Certificates()) != 2 {
			t.Errorf("%q", s.Certificates())
		}
		data, err := s.Sign(statement)
		if !errors.Is(err, c.sign) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil { // as if it had been made while the certificate was valid
			s.chain[0].NotAfter = time.Now().Add(time.Hour)
			if data, err = s.Sign(statement); err != nil {
				t.Fatal(err)
			}
		}
		b, err := Parse("x", data)
		if err != nil {
			t.Fatal(err)
		}
		v, err := b.Verify(trust(root))
		if !errors.Is(err, c.check) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil && (v.Certificate != "CN=leaf" || v.KeySHA256 != s.KeySHA256) {
			t.Errorf("%s: %+v", c.name, v)
		}
		if _, err := b.Verify(trust(other)); !errors.Is(err, fault.Refused) {
			t.Errorf("%s with another root: %v", c.name, err)
		}
		early := trust(root)
		early.time = time.Now().Add(-2 * time.Hour)
		if _, err := b.Verify(early); !errors.Is(err, fault.Refused) {
			t.Errorf("%s before it is valid: %v", c.name, err)
		}
		b.chain = b.chain[:1]
		if _, err := b.Verify(trust(root)); !errors.Is(err, fault.Refused) {
			t.Errorf("%s without the issuer: %v", c.name, err)
		}
		for what, chain := range map[string]string{"another's": pemOf(issuer), "a gap": pemOf(leaf, root), "none": "x"} {
			if _, err := ReadSigner(keyPath, write(t, chainPath, chain)); !errors.Is(err, fault.Usage) {
				t.Errorf("%s, %s: %v", c.name, what, err)
			}
		}
	}
}

// TestHostile verifies signatures by a trusted key of statements that the format does not permit, and bundles that are
// no signatures.
func TestHostile(t *testing.T) {
	s, public := signer(t, elliptic.P256())
	trust, err := TrustKey(public)
	if err != nil {
		t.Fatal(err)
	}
	sum := strings.Repeat("ab", 32)
	good, err := Model("m", []digest.File{{Name: "a", SHA256: sum}, {Name: "b", SHA256: sum}}, []string{"c"})
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, data []byte, kind error) {
		t.Helper()
		b, err := Parse("x", data)
		if err == nil {
			_, err = b.Verify(trust)
		}
		if !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", name, err, kind)
		}
	}
	for _, c := range []struct {
		name, old, to string
		kind          error
	}{
		{"nothing", "", "", nil},
		{"member of a resource", `"algorithm"`, `"size":1,"algorithm"`, nil},
		{"_type", "in-toto.io", "example.org", fault.Broken},
		{"predicateType", "signature/v1.0", "signature/v2.0", fault.Unsupported},
		{"of 0.2", ModelPredicate, "https://model_signing/Digests/v0.1", fault.Unsupported},
		{"no predicate", `"predicate":`, `"x":`, fault.Broken},
		{"no subject", `"subject":`, `"x":`, fault.Broken},
		{"two subjects", `"subject":[`, `"subject":[{"name":"x","digest":{"sha256":"` + sum + `"}},`, fault.Broken},
		{"no name", `"name":"m"`, `"name":""`, fault.Broken},
		{"another hash", `"digest":{"sha256":`, `"digest":{"sha512":`, fault.Broken},
		{"another sum", `"digest":{"sha256":"`, `"digest":{"sha256":"0`, fault.Broken},
		{"shards", `"method":"files"`, `"method":"shards"`, fault.Unsupported},
		{"shard_size", `"method"`, `"shard_size":5,"method"`, fault.Broken},
		{"hash_type", `"hash_type":"sha256"`, `"hash_type":"blake3"`, fault.Unsupported},
		{"links", `"allow_symlinks":false`, `"allow_symlinks":true`, fault.Unsupported},
		{"links by a text", `"allow_symlinks":false`, `"allow_symlinks":"false"`, fault.Broken},
		{"algorithm", `"algorithm":"sha256"`, `"algorithm":"blake2b"`, fault.Unsupported},
		{"upper case", sum, strings.ToUpper(sum), fault.Broken},
		{"short sum", sum, sum[2:], fault.Broken},
		{"twice", `"name":"b"`, `"name":"a"`, fault.Broken},
		{"outside", `"name":"b"`, `"name":"../b"`, fault.Broken},
		{"absolute", `"name":"b"`, `"name":"/b"`, fault.Broken},
		{"dot", `"name":"b"`, `"name":"./b"`, fault.Broken},
		{"control", `"name":"b"`, `"name":"b\u0007"`, fault.Broken},
		{"no text", `"name":"b"`, `"name":5`, fault.Broken},
		{"a member twice", `"name":"b"`, `"name":"b","name":"c"`, fault.Broken},
		{"upper case member", `"resources"`, `"Resources"`, fault.Broken},
		{"ignore everything", `"c"`, `"."`, fault.Broken},
		{"ignore outside", `"c"`, `"../c"`, fault.Broken},
		{"ignore a pattern", `"c"`, `"*.gguf"`, fault.Broken},
		{"ignore a number", `"c"`, `1`, fault.Broken},
		{"ignore a text", `[".git",".gitattributes",".github",".gitignore","c"]`, `"c"`, fault.Broken},
		{"ignore nothing", `,"ignore_paths":[".git",".gitattributes",".github",".gitignore","c"]`, ``, nil},
		{"end", `}}}`, `}}}x`, fault.Broken},
		{"no end", `}}}`, `}}`, fault.Broken},
	} {
		text := strings.Replace(string(good), c.old, c.to, 1)
		if c.old != "" && text == string(good) {
			t.Errorf("%s: %q is not in %s", c.name, c.old, good)
		}
		data, err := s.Sign([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		check(c.name, data, c.kind)
	}

	data, err := s.Sign(good)
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100)
	for _, c := range []struct {
		name, old, to string
		kind          error
	}{
		{"nothing", "", "", nil},
		{"older media type", ".v0.3+json", "+json;version=0.2", nil},
		{"keyid null", `"keyid": ""`, `"keyid": null`, nil},
		{"no keyid", `,
    "keyid": ""`, ``, nil},
		{"keyid", `"keyid": ""`, `"keyid": "x"`, fault.Broken},
		{"mediaType", ".v0.3+json", ".v0.9+json", fault.Broken},
		{"payloadType", "vnd.in-toto", "vnd.other", fault.Broken},
		{"no signature", `"sig"`, `"x"`, fault.Broken},
		{"two signatures", `"signatures": [`, `"signatures": [{"sig":"AAAA"},`, fault.Broken},
		{"no signatures", `"signatures"`, `"x"`, fault.Broken},
		{"message", `"dsseEnvelope"`, `"messageSignature": {}, "dsseEnvelope"`, fault.Broken},
		{"no key", `"publicKey"`, `"x"`, fault.Broken},
		{"two keys", `"publicKey"`, `"x509CertificateChain": {}, "publicKey"`, fault.Broken},
		{"Sigstore", `"publicKey"`, `"certificate"`, fault.Unsupported},
		{"no certificates", `"publicKey"`, `"x509CertificateChain"`, fault.Broken},
		{"another hint", s.KeySHA256, sum, fault.Refused},
		{"older key", `"hint": "` + s.KeySHA256 + `"`, `"rawBytes": "AAAA", "keyDetails": "X"`, nil},
		{"twice", `"mediaType"`, `"mediaType": "x", "mediaType"`, fault.Broken},
		{"deep", `"mediaType"`, `"x": ` + deep + `, "mediaType"`, fault.Broken},
		{"no base64", `"sig": "`, `"sig": "!`, fault.Broken},
		{"not UTF-8", `"mediaType"`, "\"\xff\": 1, \"mediaType\"", fault.Broken},
	} {
		text := strings.Replace(string(data), c.old, c.to, 1)
		if c.old != "" && text == string(data) {
			t.Errorf("%s: %q is not in %s", c.name, c.old, data)
		}
		check(c.name, []byte(text), c.kind)
	}
	// each byte of the payload and of the signature counts
	var b bundleJSON
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []*[]byte{&b.Envelope.Payload, &b.Envelope.Signatures[0].Signature} {
		was := *part
		for i := range was {
			*part = slices.Clone(was)
			(*part)[i] ^= 1
			changed, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			check("a bit", changed, fault.Broken)
		}
		*part = was
	}
	if _, err := Parse("x", []byte("{}")); !errors.Is(err, fault.Broken) {
		t.Errorf("%v", err)
	}
}

// TestProvenance signs and verifies a statement about files.
func TestProvenance(t *testing.T) {
	s, public := signer(t, elliptic.P384())
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.gguf"), "x")
	write(t, filepath.Join(dir, "more"), "not a subject")
	files, _, err := Files(context.Background(), dir, []string{"more"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	statement, err := json.Marshal(About(files, ProvenancePredicate, map[string]any{"buildDefinition": nil}))
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.Sign(statement)
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, filepath.Join(dir, ProvenanceName), string(data))
	v, err := verified(path, public)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := v.Compare(context.Background(), dir, nil, Options{}); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	write(t, filepath.Join(dir, "x.gguf"), "y")
	if found, err := v.Compare(context.Background(), dir, nil, Options{}); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestInside(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{dir + "/a": "a", dir + "/b/c": "b/c", dir: "", dir + "/../x": "",
		dir + "x": ""} {
		if name, ok, err := Inside(dir, path); err != nil || name != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, %v", path, name, ok, err)
		}
	}
}

func FuzzBundle(f *testing.F) {
	for _, name := range []string{"P-256", "P-384", "P-521", "certificates"} {
		data, err := os.ReadFile(filepath.Join("testdata", name, "model", ModelName))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		var b bundleJSON
		if err := json.Unmarshal(data, &b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Envelope.Payload)
	}
	trust, err := TrustKey("testdata/P-256/public.pem")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		kinds := func(err error) {
			if !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Unsupported) && !errors.Is(err, fault.Refused) &&
				!errors.Is(err, fault.Usage) {
				t.Errorf("an error of no kind: %v", err)
			}
		}
		if b, err := Parse("x", data); err != nil {
			kinds(err)
		} else if _, err := b.Verify(trust); err != nil {
			kinds(err)
		}
		s, err := parseStatement(data)
		if err != nil {
			kinds(err)
			return
		}
		for i := range s.Files {
			if f := &s.Files[i]; f.Check() != nil || i > 0 && s.Files[i-1].Name >= f.Name {
				t.Errorf("%+v", f)
			}
		}
		for _, name := range s.Ignored {
			if name == "" || name == "." || !filepath.IsLocal(filepath.FromSlash(name)) {
				t.Errorf("ignored %q", name)
			}
		}
		if s.PredicateType != ModelPredicate {
			return
		}
		again, err := Model(s.Name, s.Files, s.Ignored)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := parseStatement(again); err != nil || !slices.Equal(same.Files, s.Files) {
			t.Errorf("%v: %s", err, again)
		}
	})
}
