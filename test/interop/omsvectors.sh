#!/bin/sh
# Makes the signatures in publish/sign/testdata with omssign.py and openssl; keys are thrown away. Call it from the
# folder of the repository.
set -eu
out=publish/sign/testdata
here=$(pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
rm -rf "$out"/P-* "$out/certificates"
for curve in P-256 P-384 P-521; do
	dir=$out/$curve
	mkdir -p "$dir/model/a"
	printf 'weights\n' >"$dir/model/a/b.bin"
	printf 'first in code points\n' >"$dir/model/a.txt"
	printf 'not signed\n' >"$dir/model/README.md"
	openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:$curve -out "$tmp/key.pem"
	openssl pkey -in "$tmp/key.pem" -pubout -out "$dir/public.pem"
	python3 test/interop/omssign.py "$dir/model" "$tmp/key.pem"
done

# a root of RSA, an issuer between, and a certificate for signing code, all valid for a hundred years
dir=$out/certificates
mkdir -p "$dir/model"
printf 'weights\n' >"$dir/model/c.bin"
cd "$tmp"
for name in root issuer leaf; do
	case $name in
	root) openssl genpkey -algorithm RSA -out root.key 2>/dev/null ;;
	*) openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out $name.key ;;
	esac
done
openssl req -x509 -new -key root.key -subj /CN=root -days 36500 -out root.pem \
	-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
issue() { # NAME ISSUER EXTENSIONS
	openssl req -new -key $1.key -subj /CN=$1 -out $1.csr
	printf "$3" >$1.ext
	openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2.key -CAcreateserial -days 36500 -extfile $1.ext -out $1.pem 2>/dev/null
}
issue issuer root 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n'
issue leaf issuer 'keyUsage=critical,digitalSignature\nextendedKeyUsage=codeSigning\n'
cat leaf.pem issuer.pem >chain.pem
cd "$here"
cp "$tmp/root.pem" "$dir/roots.pem"
python3 test/interop/omssign.py "$dir/model" "$tmp/leaf.key" "$tmp/chain.pem"
