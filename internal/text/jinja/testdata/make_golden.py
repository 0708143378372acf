#!/usr/bin/env python3
"""Renders templates with the library transformers: make_golden.py OUT.json

The templates below use every construct that internal/text/jinja has, and what Python refuses. OUT.json is a list of
{"source", "vars", and "want" (the text) or "error" (what Python says)}.
"""
import datetime
import json
import os
import sys

from transformers.utils import chat_template_utils

NOW = datetime.datetime(2026, 3, 5, 7, 8, 9)

USER = {'role': 'user', 'content': 'What does defer do?'}
VARS = {
    'n': 7, 'f': 0.1, 't': True, 'z': None, 's': 'Hello, wörld', 'e': '', 'l': [3, 1, 2], 'w': ['b', 'A', 'c', 'a'],
    'd': {'b': 1, 'a': [1, 2.5, None, True], 'items': 'x', 'c c': {'k': "it's"}}, 'big': 123456789012345678901234567890,
    'people': [{'name': 'Ann', 'age': 30, 'city': 'Rome'}, {'name': 'bob', 'age': 25, 'city': 'Oslo'},
               {'name': 'Cy', 'age': 30, 'city': 'rome'}],
    'u': '\u00dcbe: caf\u00e9 \u4e16\u754c \U0001f600\ttab "q" \'a\' \\ <b>&', 'lines': 'a\n\n  b\nc\n',
    'messages': [USER, {'role': 'assistant', 'content': 'It runs a call.'}], 'bos_token': '<s>',
}

# Expressions, each printed by itself.
EXPRESSIONS = r'''
1 + 2 * 3 - 4
7 // 2, -7 // 2, 7 // -2, 7 % 3, -7 % 3, 7 % -3, 7 / 2, 2 ** 3 ** 2, -2 ** 2
7.5 // 2, -7.5 // 2, 7.5 % -2, 1e3, 1.5e-7, 2.0 ** 0.5, 2 ** -1
1 / 0
1 // 0
1 % 0
1.0 / 0
0b101 + 0o17 + 0xfF + 1_000
1.0, 100000000000000000.0, 1e16, 123456789.125, 0.0001, 0.00001, 1e22, -0.0
true, false, none, True, False, None
not true, not 0, not e, not l
1 < 2 < 3, 1 < 3 < 2, 1 == 1.0, 1 == true, 'a' < 'b', [1, 2] < [1, 3], 1 != 2
1 < 'a'
none < 1
l < 3
'a' in 'abc', 'x' not in 'abc', 1 in l, 'b' in d, 9 not in l, none in l
1 in 'abc'
1 in 5
z in z
t and 'yes' or 'no', e or 'default', 0 and 1, none or false
'yes' if t else 'no'
'yes' if e
('yes' if e) is defined
'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1, 'x'] ~ missing
'a' + 1
1 + 'a'
none + 'a'
l + [4]
l + 4
(1,) + (2, 3)
'ab' * 3, 3 * 'ab', [1] * 3, 'ab' * -1
'a' 'b' "c"
'\n\t\\\'\"\x41\u00e9\q'
l[0], l[-1], l[1:], l[:1], l[::-1], l[5:], l[-2:], l[0:3:2]
l[9] is defined, l['x'] is defined
l[9]
l[9].x
s[0], s[-1], s[7:], s[::-1], s[1:5:2], s[99:]
s[99]
s['upper']()
z[1:]
n[1:]
d[1:]
d.b, d['b'], d.a[1], d['c c'].k, d.missing is defined
d.items is callable
d['items']
d.items()
d.items() | list
d.keys() | list, d.values() | list
d.get('b'), d.get('x'), d.get('x', 5), d.get('x', none)
d.get('x', default=5)
'a'.replace('a', 'b', count=1), 'a'.split(sep='a')
'a'.replace(old='a', new='b')
'a'.strip(chars='a')
d.get('x')['y']
d.keys()
d
[1, 'a', "it's", none, true, 1.5, {'k': (1, 2)}, ()]
(1,), (1, 2), ()
{'a': 1, 2: 'b', none: 3, 'a': 9}
{1: 'a', true: 'b', 1.0: 'c'}
{[1]: 2}
missing
missing.x
missing['x']
missing()
missing + 1
1 + missing
missing < 1
missing == missing, missing == none, missing != 1
missing | length, missing | list, missing | default('x')
missing ~ 'x'
-missing
'x' in missing
missing in 'x'
missing is defined, missing is undefined, missing is none
missing | upper, missing | trim, missing | string
missing | tojson
missing | int
z.x
z.x.y
z | length
n.x
n.real is defined, s.upper is defined, s.nothing is defined, l.append is defined
s.__class__
s.__class__.__mro__
''.__class__
d.__class__.__name__
l.append(4)
d.update({'a': 1})
d.pop('b')
d.copy(), l.copy()
n, f, big, t, z
big | tojson
u
u | length, u[5]
[u]
-n, +n, -f, -true
-s
n is number, f is number, t is number, s is number
n is integer, t is integer, f is float, n is float, t is boolean
s is string, n is string, l is sequence, s is sequence, d is sequence, n is sequence, d.items() is sequence
d is mapping, l is mapping
l is iterable, n is iterable, s is iterable, missing is iterable, none is iterable
t is true, t is false, false is false, n is true
n is odd, n is even, n is divisibleby 7, n is divisibleby(2)
s is lower, 'abc' is lower, 'ABC' is upper, '' is lower
'a' is eq 'a', 1 is ne(2), 1 is lt 2, 2 is ge 2, 3 is greaterthan 2, 1 is sameas 1, none is sameas none
'a' is in 'abc', 1 is in [1, 2]
'upper' is filter, 'nope' is filter, 'odd' is test, 'nope' is test
s is not none, z is not none
s is nope
s | nope
1 if s else s | nope
'x'|safe is escaped, 'x' is escaped
range is callable, s is callable, missing is callable
range(3), range(1, 4) | list, range(5, 0, -2) | list, range(3)[1], range(0) | list, range(10)[2:5] | list
range(100001)
range(0, 200000, 2) | length
range('a')
range()
range(3, step=1)
dict(a=1, b=2), dict({'a': 1}, b=2), dict([['x', 1]])
namespace(a=1).a, namespace().a is defined
namespace(a=1)['a']
raise_exception('stop: ' + s)
raise_exception()
strftime_now('%Y-%m-%d %H:%M:%S %d %B %b %A %a %j %p %I %y %% %-d %e')
'a,b,,c'.split(','), ' a  b '.split(), 'a b c'.split(' ', 1), 'abc'.split('x'), ''.split(), ''.split(',')
'a b c'.split(none, 1), 'a b c'.rsplit(' ', 1), 'a  b  c '.rsplit(none, 1), 'a,b'.split(sep=',', maxsplit=1)
'abc'.split('')
'a\nb\r\nc'.splitlines(), 'a\nb\n'.splitlines(true)
'  x '.strip(), '  x '.lstrip(), '  x '.rstrip(), 'xxaxx'.strip('x'), 'abc'.rstrip('cb'), '\n x\t'.strip('\n')
'abc'.startswith('a'), 'abc'.startswith(('x', 'a')), 'abc'.endswith('c'), 'abc'.startswith('b', 1), 'abc'.endswith('b', 0, 2)
'abc'.startswith(1)
'a-b-c'.replace('-', '+'), 'a-b-c'.replace('-', '+', 1), 'abc'.replace('', '.')
'hello World'.upper(), 'Hello'.lower(), 'hello wORLD'.title(), 'hELLO'.capitalize(), "they're".title(), 'aB'.swapcase()
'straße'.upper(), 'ß'.capitalize(), 'ΑΣ'.lower()
'-'.join(['a', 'b']), ''.join([]), ', '.join('abc')
'-'.join([1])
'abcabc'.find('c'), 'abc'.find('x'), 'abcabc'.rfind('c'), 'abc'.index('b'), 'aXbX'.count('X'), 'ü-x'.find('x')
'abc'.index('x')
'12'.isdigit(), 'a1'.isalnum(), 'ab'.isalpha(), ' '.isspace(), 'AB'.isupper(), 'ab'.islower(), ''.isdigit(), '½'.isnumeric()
'7'.zfill(3), '-7'.zfill(4), 'x'.center(5, '*'), 'x'.ljust(3) ~ '|', 'x'.rjust(3), 'ab'.center(5, '*')
'a=b=c'.partition('='), 'a=b=c'.rpartition('='), 'abc'.partition('='), 'abc'.rpartition('=')
'prefix-x'.removeprefix('prefix-'), 'x.txt'.removesuffix('.txt')
'x'.nothing()
'x'.upper(1)
'{} {}'.format(1, 'a'), '{1} {0}'.format(1, 'a'), '{a} {b!r}'.format(a=1, b='x'), '{{}}'.format()
'{:>5}|{:<5}|{:^5}|{:05d}|{:+}|{:,}|{:.2f}|{:x}|{:%}|{:e}|{:10.3f}|{:*^7}'.format('a', 'b', 'c', 42, 3, 1234567, 3.14159, 255, 0.5, 12345.678, 2.5, 'm')
'{0[a]} {0.b}'.format({'a': 1})
'{[a]}'.format(d)
'{} {}'.format(1)
'{:d}'.format('x')
'{.__class__}'.format(1)
'%s %d %5.2f %x %r %%' % ('a', 3, 2.5, 255, 'q')
'%s' % 'x', '%s' % n, '%-5s|%5s|%05d|%+d' % ('a', 'b', 42, 3), '%(a)s %(b)d' % {'a': 'x', 'b': 2}
'%s %s' % ('a',)
'%s' % ('a', 'b')
'%d' % 'x'
'%s' % [1, 2]
'%s' % missing
'%.3g %g %e %G' % (1234.5, 0.00001, 12345.6789, 1e20)
'%3d|%-3d|%03d|% d' % (1, 2, 3, 4)
l | sort, l | sort(reverse=true), w | sort, w | sort(case_sensitive=true)
['a', 1] | sort
people | sort(attribute='age') | map(attribute='name') | list, people | sort(attribute='age,name') | map(attribute='name') | join(',')
people | map(attribute='nope') | list
people | map(attribute='nope', default='?') | join
w | map('upper') | list, w | map('replace', 'a', 'z') | join, l | map('string') | join('-')
l | map | list
w | map('nope') | list
l | select('odd') | list, l | reject('odd') | list, [0, 1, '', 'x'] | select | list, l | select('>', 1) | list
people | selectattr('age', '==', 30) | map(attribute='name') | list, people | rejectattr('age', 'equalto', 30) | list | length
people | selectattr('city') | list | length, people | selectattr('nope', 'defined') | list, people | selectattr('age', 'gt', 26) | list | length
l | select('nope') | list
people | groupby('city') | length, people | groupby('age') | map('first') | list
people | map(attribute='age') | sum, l | sum, l | sum(start=10), people | sum(attribute='age')
l | min, l | max, w | min, people | max(attribute='age'), [] | min
[] | min is defined
l | first, l | last, 'abc' | first, 'abc' | last, [] | first, d | first
l | length, s | count, d | length, range(4) | length
n | length
l | reverse | list, 'abc' | reverse
'abc' | list, d | list, range(3) | list
n | list
w | unique | list, [1, 1.0, true, 2] | unique | list, people | unique(attribute='city') | list | length
l | join(', '), w | join, people | join('; ', attribute='name'), 'abc' | join('-'), [1, none, true] | join(',')
n | join
d | dictsort | length
{'b': 1, 'A': 2, 'a': 0} | dictsort, {'b': 1, 'A': 2} | dictsort(true), {'b': 1, 'A': 2} | dictsort(by='value'), {'b': 1, 'a': 2} | dictsort(reverse=true)
l | dictsort
{'a': 1, 'b': 2} | items | list, missing | items | list
l | items | list
s | upper, s | lower, 'hello wORLD foo-bar (x)' | title, 'hELLO w' | capitalize, n | upper
'  x ' | trim, 'xxaxx' | trim('x'), n | trim
'abc' | replace('b', 'x'), 'aaa' | replace('a', 'b', 2), n | replace(7, 8)
lines | indent, lines | indent(2, true), lines | indent('> ', first=true, blank=true), '' | indent
n | indent
'a b c' | wordcount, 'x' | center(5), 'hello world foo bar baz' | truncate(12), 'hello world foo bar baz' | truncate(12, true), 'abc' | truncate(3)
'42' | int, '4.7' | int, 'x' | int, 'x' | int(5), '0x1f' | int(0, 16), 3.9 | int, -3.9 | int, none | int, true | int, ' 7 ' | int, '1_000' | int
'1.5' | float, 'x' | float, 'x' | float(2), 3 | float, none | float, 'inf' | float, '1e3' | float
3.14159 | round, 3.14159 | round(2), 2.5 | round, 3.5 | round, 42.55 | round(1, 'floor'), 42.51 | round(1, 'ceil'), 7 | round, 1234 | round(-2)
2.5 | round(method='nope')
-5 | abs, 5.5 | abs
'x' | abs
'<b>&"\'' | escape, '<b>' | e | e, ('<b>' | safe) + '<i>', '<i>' + ('<b>' | safe), '<b>' | safe | forceescape
('<b>' | safe) ~ '<i>', (('<b>' | safe) + 1) if false else 2
('<b>'|safe).replace('b', '<'), ('<b>%s'|safe) % '<', ('<b>{}'|safe).format('<'), ('a,b'|safe).split(','), ('a'|safe)|upper, (['<']|join('<'|safe))
('<'|safe).join(['<', '>']), ('<'|safe) * 2, ('<b>'|safe)[0] + '&'
s | default('x'), missing | default('x'), e | default('x'), e | default('x', true), z | default('x'), z | d('x', boolean=true), missing | default
s | attr('upper') is callable, d | attr('b') is defined, missing | attr('x')
'%s-%s' | format(1, 2), '%(a)s' | format(a=1)
'%s' | format(1, a=2)
[1, 2, 3, 4, 5] | batch(2) | list, [1, 2, 3] | batch(2, 0) | list, [1, 2, 3, 4, 5] | slice(2) | list, [1, 2, 3, 4, 5] | slice(3, 'x') | list
'a b&c/d' | urlencode, {'a b': 'c/d'} | urlencode
l | string, d | string, none | string, 1.0 | string
d | tojson, u | tojson, [] | tojson, {} | tojson, 1.0 | tojson, 1e100 | tojson, none | tojson, 'a' | tojson
d | tojson(indent=2)
d | tojson(indent=0)
d | tojson(indent='\t')
d | tojson(separators=(',', ':')), d | tojson(separators=[', ', '=']), u | tojson(ensure_ascii=true), d | tojson(sort_keys=true)
d | tojson(true), d | tojson(false, 1, (',', ': '), true)
{'x': [], 'y': {}, 'z': [1]} | tojson(indent=4)
{1: 2, none: 3, true: 4, 1.5: 5} | tojson
{(1, 2): 3} | tojson
(1, 2) | tojson, range(2) | list | tojson
range(2) | tojson
d.items() | tojson
l | map('string') | tojson
'/</script>\x7f' | tojson
(l | map('string')) | length
(l | select('odd')) | first
(l | select('odd')) | last
1, 2
l.index(1), l.count(2), (1, 2, 1).count(1)
l.index(9)
s | upper | lower | title | length
(s | upper).lower()
s|replace('l', 'L')|trim is string
d.a[0] + d.b
people[0].name ~ people[-1]['name']
people[0].name.upper()
not s is string
not 1 in l
1 + 1 is odd
(1, 2) == (1, 2), [1, 2] == (1, 2), {'a': 1} == {'a': 1.0}, 'a' == ('a'|safe)
1 is defined and missing is not defined
'a' if false else 'b' if false else 'c'
[x for x in l]
lambda
(1
)
1 +
'abc
a b
{{ 1 }}
1 | default(2) | default
"a" "b" ~ 'c'
dict(**{'a': 1}), dict(*[{'b': 2}])
dict(a=1, a=2)
range(*[1, 3]) | list
joiner(',')() ~ 'x', cycler('a', 'b').next()
9223372036854775807 - 1, -9223372036854775807
s.encode is defined, n.bit_length is defined
'a'.x is defined, 'a'.x
loop is defined
self is defined
s.split(',')[0].split('l') | last
'a' < 'B', 'ä' > 'z', '' < 'a'
[[1, 2], [0, 5]] | sort, [[1, 2], [0, 5]] | map('first') | list, [[1, 2], [0, 5]] | map(attribute=1) | list, [[1, 2], [0, 5]] | map(attribute='1') | list
'a.b' | string | list | length
(none, 1) | length
1.5 | int + 1
'abc'[-5:2], 'abc'[:-1], 'abc'[::2], 'abc'[2:0:-1], 'abc'[none:2], 'äöü'[1:], 'äöü'[::-1]
s['x':]
'abc'[::0]
'x' * n * 2
1 == '1', none == false, 0 == false, '' == none
'\u4e16' ~ '\U0001f600'
[1.0, 2.50, 1e-10, 1e300] | string
'  ' | length, 'é' | length, '\n' | length
1.e5
5.upper
'{}'.format(1.5), '{}'.format(none), '{}'.format([1, 'a']), '{:>8}'.format(true), '{:g}'.format(0.00001), '{:.3}'.format('abcdef'), '{:.3}'.format(3.14159)
'{:,.2f}'.format(1234567.891), '{:_}'.format(1234567), '{:#x}'.format(255), '{:b}'.format(5), '{:08.3f}'.format(-3.14159), '{:<08d}'.format(5), '{: d}'.format(5)
'{!s:>5}'.format('a'), '{0!r}'.format('a'), '{0:{1}}'.format('a', 5)
'{!x}'.format(1)
'}'.format()
'{'.format()
'''

# Whole templates.
TEMPLATES = [
    'plain text\n', 'two\nlines\n\n', '\n', '', ' {{ n }} \n{{ n }}\n', 'a\r\nb\rc\r\n',
    '{% if t %}\nyes\n{% else %}\nno\n{% endif %}\nend\n', '  {% if t %}  \n  yes\n  {% endif %}\nend',
    'a {%- if t -%} b {%- endif -%} c', 'a\n {%- if t %} b\n {%+ endif %}\n c', 'a {{- n -}} b\n\n{{- n }}\n{{ n -}}\n x',
    '{%- if t -%}\n\n  x: {{ n }}\n{%- endif -%}\n\n y', '{# a comment #}x{#- and -#} y\n  {# line #}\nz', '{% if t +%}\nx{% endif %}',
    'a{# x {{ n }} {% if %} #}b', '{% raw %}{{ n }} {% if %}{% endraw %}', ' {%- raw -%} \n {{ x }} \n {%- endraw -%} \n b',
    '{% raw %}\n x\n  {% endraw %}\nb', '{{ "{{" }}{{ "%}" }}{{ {"a": {"b": 1}} }}',
    '{% for x in l %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}',
    '{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }}{{ loop.previtem }}{{ loop.nextitem }} {% endfor %}',
    '{% for x in l %}{{ loop.cycle("a", "b") }}{{ loop.changed(x > 1) }}{{ loop.nothing is defined }}{% endfor %}',
    '{% for x in l %}{{ loop["index"] }}{% endfor %}{{ loop is defined }}{{ x is defined }}',
    '{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}', '{% for k in d %}{{ k }};{% endfor %}', '{% for c in "aé" %}[{{ c }}]{% endfor %}',
    '{% for x in missing %}x{% else %}none{% endfor %}', '{% for x in z %}x{% endfor %}', '{% for x in n %}x{% endfor %}',
    '{% for x in l if x > 1 %}{{ x }}{{ loop.length }}{% else %}no{% endfor %}', '{% for x in l if x > 9 %}{{ x }}{% else %}no{% endfor %}',
    '{% for a, b in [[1, 2], [3]] %}{{ a }}{% endfor %}', '{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}',
    '{% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}',
    '{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}', '{% break %}',
    '{% for x in [1, [2, [3]]] recursive %}{% if x is iterable %}<{{ loop(x) }}>{% else %}{{ x }}@{{ loop.depth }}{% endif %}{% endfor %}',
    '{% for x in l %}{{ loop(l) }}{% endfor %}', '{% set a = 1 %}{% for x in l %}{% set a = x %}{{ a }}{% endfor %}{{ a }}',
    '{% set ns = namespace(a=1, b=[]) %}{% for x in l %}{% set ns.a = ns.a + x %}{% set ns.b = ns.b + [x] %}{% endfor %}{{ ns.a }}{{ ns.b }}',
    '{% set ns.a = 1 %}', '{% set x = {"a": 1} %}{% set x.a = 2 %}', '{% set a, b = 1, 2 %}{{ a }}{{ b }}', '{% set a, b = 1 %}', '{% set a = 1, 2 %}{{ a }}',
    '{% set a %}  x {{ n }}\n{% endset %}[{{ a }}]{{ a is string }}', '{% set a | upper | trim %} x {{ s }} {% endset %}[{{ a }}]', '{% set ns = namespace() %}{% set ns.x %}abc{% endset %}{{ ns.x }}',
    '{% if missing %}a{% elif n == 7 %}b{% else %}c{% endif %}', '{% if e %}a{% elif z %}b{% else %}c{% endif %}', '{% if t %}{% set q = 1 %}{% endif %}{{ q }}',
    '{% with a = 1, b = n %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}{{ a is defined }}{{ c is defined }}', '{% set a = 5 %}{% with a = 1, b = a %}{{ b }}{% endwith %}',
    '{% macro m(a, b=2, c="x" ~ b) %}<{{ a }}{{ b }}{{ c }}>{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(c=4, a=5) }}{{ m() }}', '{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}',
    '{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}', '{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}', '{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}',
    '{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body {{ n }}{% endcall %}', '{% macro m(x) %}{% for i in x %}{{ caller(i, 1) }}{% endfor %}{% endmacro %}{% call(a, b=5) m(l) %}{{ a }}-{{ b }};{% endcall %}',
    '{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}', '{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}', '{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}',
    '{% macro a(n) %}{% if n > 0 %}{{ n }}{{ a(n - 1) }}{% endif %}{% endmacro %}{{ a(5) }}', '{% set q = 1 %}{% macro m() %}{{ q }}{{ r }}{% endmacro %}{% set q = 2 %}{% set r = 3 %}{{ m() }}',
    '{% macro m() %}{% set q = 5 %}{{ q }}{% endmacro %}{% set q = 1 %}{{ m() }}{{ q }}', '{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}', '{% macro m() %}a{% endmacro %}{% set f = m %}{{ f() }}{{ m.name }}{{ m is callable }}',
    '{% macro m(x) %}\n  line {{ x }}\n{% endmacro %}\n{{ m(1) }}{{- m(2) | trim }}', '{% filter upper %}abc {{ s }}{% endfilter %}', '{% filter replace("a", "b") | upper %}a{% endfilter %}',
    '{% generation %}x{{ n }}{% endgeneration %}', '{% for m in messages %}{% if m.role == "assistant" %}{% generation %}{{ m.content }}{% set k = 1 %}{% endgeneration %}{{ k is defined }}{% else %}{{ m["content"] }}{% endif %}{% endfor %}',
    '{% block a %}x{{ n }}{% endblock %}{% block b scoped %}y{% endblock b %}', '{% for x in l %}{% block c %}{{ x is defined }}{% endblock %}{% endfor %}', '{% print n, s %}',
    '{% include "x" %}', '{% import "x" as y %}', '{% from "x" import y %}', '{% extends "x" %}', '{% if e %}{% include "x" %}{% endif %}ok', '{% do l.append(1) %}', '{% nope %}', '{% endif %}', '{% if t %}', '{% for x in l %}{% endif %}',
    '{% if t %}{% nope %}{% endif %}', '{% if e %}{{ 1 | nope }}{% endif %}ok', '{% if e %}{% for x in l %}{{ 1 | nope }}{% endfor %}{% endif %}ok', '{% if e %}{{ 1 is nope }}{% endif %}ok', '{{ n', '{{ n }', '{% if t', '{# x', '{% raw %}x', '{{ }}', '{% %}', '{% set %}', '{% set 1 = 2 %}', '{% set none = 2 %}', '{% for 1 in l %}{% endfor %}',
    '{% macro m(a=1, b) %}{% endmacro %}', '{{ "a" | }}', '{{ a. }}', '{{ a[ }}', '{{ (1, 2] }}', '{{ 1 is }}', '{{ f(a=1, 2) }}', '{{ 1 is odd is even }}', '{{ "\\x4" }}', '{{ § }}', '{{ a ? b }}', '{% set a = 1 if %}', '{{ not }}', '{% else %}', '{% elif t %}', '{% call 1 %}{% endcall %}', '{% with a %}{% endwith %}',
    '{% set x = messages[0] %}{% for k in x %}{{ k }}:{{ x[k] }},{% endfor %}', '{{ bos_token }}{% for m in messages %}{{ "<|" + m["role"] + "|>" }}\n{{ m.content | trim }}{{ eos_token }}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}',
    '{%- set loop_messages = messages[1:] if messages[0].role == "system" else messages -%}{%- for m in loop_messages -%}{%- if (m.role == "user") != (loop.index0 % 2 == 0) -%}{{ raise_exception("roles must alternate") }}{%- endif -%}[{{ m.role }}] {{ m.content }}\n{% endfor %}',
    '{% for m in messages[::-1] %}{{ m.role }} {% endfor %}{% set a = messages | selectattr("role", "equalto", "user") | list %}{{ a | length }}{{ (messages | last)["role"] }}',
    '{% set j = joiner("; ") %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}{% set c = cycler("a", "b") %}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set q = c.reset() %}{{ c.next() }}', '{% set it = l | map("string") %}{% for x in it %}{{ x }}{% endfor %}-{% for x in it %}{{ x }}{% endfor %}',
    '{% if l %}{% if e %}a{% else %}b{% endif %}{% endif %}{% if not e and (n > 3 or z) %}c{% endif %}', '{% if n > 3 -%}\n  x\n{%- elif n -%}\n y\n{%- endif %}\n', '{{ s if s is string and s|length > 3 else "-" }}', '{% for i in range(3) -%}\n {{ i }},\n{%- endfor %}',
    'x{% set a = 1 -%}   \n\n  y', 'x   \n   {%- set a = 1 %}\ny', 'x   \n   {{- n }}', '\t{% set a = 1 %}\n\ty', '{% set a = 1 %} {% set b = 2 %}\nz', 'a  {% set a = 1 %}\nb', '{% for x in l %}\n  {{ x }}\n{% endfor %}\n', '{{ n }}\n\n', '{{ n }}\n', '{% if t %}x{% endif %}\n\n',
    '{{ strftime_now("%d %b %Y") }}', '{% if strftime_now is defined %}{% set d2 = strftime_now("%Y") %}{% else %}{% set d2 = "x" %}{% endif %}{{ d2 }}', '{% for x in [] %}{% else %}empty{{ loop is defined }}{% endfor %}', '{% set x = 1 %}{% if t %}{% set x = x + 1 %}{% endif %}{{ x }}', '{% for x in l %}{% if loop.first %}{% set y = 1 %}{% endif %}{{ y is defined }}{% endfor %}',
    '{% macro m() %}{{ n }}{% endmacro %}{% for n in l %}{{ m() }}{% endfor %}', '{% macro m(messages) %}{{ messages }}{% endmacro %}{{ m(1) }}{{ messages | length }}', '{% set x = "a" %}{% set y %}{{ x }}{% set x = "b" %}{{ x }}{% endset %}{{ y }}{{ x }}', '{{ raise_exception("a") if e else "ok" }}', '{% macro f(x) %}{{ x * 2 }}{% endmacro %}{{ f(2) is string }}{{ f(2) + "!" }}{{ [f(1), f(2)] }}',
    '{% set ns = namespace(n=0) %}{% macro inc() %}{% set ns.n = ns.n + 1 %}{% endmacro %}{{ inc() }}{{ inc() }}{{ ns.n }}', '{% for x in l %}{{ x }}{% if loop.index == 2 %}{% break %}{% endif %}{% else %}e{% endfor %}', '{% for x in l %}{% set z2 %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endset %}{{ z2 }}{% endfor %}', '{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}',
]


def template(source):
    t = chat_template_utils._compile_jinja_template(source)
    t.environment.globals['strftime_now'] = lambda f: NOW.strftime(f)
    t.globals['strftime_now'] = t.environment.globals['strftime_now']
    return t


def render(source, given):
    try:
        return {'want': template(source).render(**given)}
    except Exception as e:
        return {'error': f'{type(e).__name__}: {e}'}


def main(out):
    sources = ['{{ ' + x + ' }}' for x in EXPRESSIONS.split('\n') if x] + TEMPLATES
    with open(out, 'w', encoding='utf-8') as f:
        f.write('[\n' + json.dumps(VARS, ensure_ascii=False))
        for s in sources:
            f.write(',\n' + json.dumps(dict(source=s, **render(s, VARS)), ensure_ascii=False))
        f.write('\n]\n')


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
