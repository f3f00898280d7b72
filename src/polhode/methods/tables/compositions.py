"""Coefficients of compositions and splittings, exact or to 60 decimals.

T and U are the kinetic and the potential energy, V = {U,{U,T}} the modified potential (for a rigid body
V = g^T I^-1 g with g the torque; never negative). The flow of T is a drift, the flow of U a kick; V changes only
momenta, so a kick by h b U + h^3 v V is one kick. Decimals are derived from the order conditions in
`tools.derive_coefficients`; sums that must be one are exactly one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from ...numbers.exact import Surd, exact, surd

Flow = Literal["T", "U", "O"]


class Part(NamedTuple):
    """The flow of T or U over `time` h; a kick adds V over `modified` h^3. O is friction and noise of a heat bath."""

    flow: Flow
    time: Any
    modified: Any = Fraction(0)


@dataclasses.dataclass(frozen=True)
class Composition:
    """A composition of a symmetric method over w_1 h, ..., w_s h with w_i = w_(s+1-i).

    The order holds for any symmetric method (of order 2 or more). `half` holds w_1 up to the centre.
    """

    name: str
    order: int
    cite: str
    where: str
    half: tuple[Fraction, ...]

    kind = "composition"

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """All of w_1, ..., w_s."""
        return self.half + self.half[-2::-1]

    @property
    def stages(self) -> int:
        """Number of steps of the method that are composed."""
        return len(self.weights)


@dataclasses.dataclass(frozen=True)
class Splitting:
    """A symmetric sequence of drifts and kicks; `half` holds it up to the centre.

    `kind` is ``"rkn"`` (an order above 4 holds because [U,[U,[U,T]]] = 0), ``"modified"`` (uses V), or
    ``"near-integrable"``: the error of one step is O(eps h^(m+1) + eps^2 h^(n+1)) if U is of size eps and
    `generalised` = (m, n), and `corrector` h^3 is the time over which V removes the term eps^2 h^3.
    """

    name: str
    kind: Literal["rkn", "modified", "near-integrable"]
    order: int
    cite: str
    where: str
    half: tuple[Part, ...]
    generalised: tuple[int, int] | None = None
    corrector: Any = None

    @property
    def sequence(self) -> tuple[Part, ...]:
        """All parts, the first to act first."""
        return self.half + self.half[-2::-1]

    @property
    def drifts(self) -> tuple[Any, ...]:
        """Times of T."""
        return tuple(part.time for part in self.sequence if part.flow == "T")

    @property
    def kicks(self) -> tuple[Any, ...]:
        """Times of U."""
        return tuple(part.time for part in self.sequence if part.flow == "U")

    @property
    def modified(self) -> tuple[Any, ...]:
        """Times of V in units of h^3, one for every kick."""
        return tuple(part.modified for part in self.sequence if part.flow == "U")

    @property
    def evaluations(self) -> int:
        """Kicks per step in a long run, where the last kick of a step merges with the first of the next."""
        return len(self.kicks) - (self.half[0].flow == "U")


@dataclasses.dataclass(frozen=True)
class Processed:
    """A kernel between a change of variables and its inverse: pre, then many steps of the kernel, then post.

    `order` is the order of the whole; `post` is applied only for output. It is exp of
    x1 h^2 [T,U] + x2 h^4 [T,[T,[T,U]]] + x3 h^4 [U,[T,[T,U]]] and higher terms, `twist` = (x1, x2, x3).
    """

    name: str
    order: int
    cite: str
    where: str
    kernel: Splitting
    post: tuple[Part, ...]
    twist: tuple[Fraction, Fraction, Fraction]

    kind = "processed"

    @property
    def pre(self) -> tuple[Part, ...]:
        """The inverse of `post`."""
        return tuple(Part(part.flow, -part.time, -part.modified) for part in reversed(self.post))

    @property
    def sequence(self) -> tuple[Part, ...]:
        """One step with both changes of variables."""
        return self.pre + self.kernel.sequence + self.post


def corrected(scheme: Splitting) -> Splitting:
    """Add half of the corrector before and half after a near-integrable scheme (Laskar and Robutel 2001)."""
    if scheme.generalised is None:
        raise ValueError(f"{scheme.name} has no corrector")
    v = _halved(scheme.corrector)
    first = scheme.half[0]
    half = (first._replace(modified=v), *scheme.half[1:]) if first.flow == "U" else (Part("U", _0, v), *scheme.half)
    generalised = (scheme.generalised[0], 4)
    return dataclasses.replace(
        scheme,
        name=f"{scheme.name}c",
        order=min(generalised),
        half=half,
        generalised=generalised,
        corrector=_0,
        where=f"{scheme.where} with its corrector",
    )


def _halved(value: Any) -> Any:
    return Surd(value.rational / 2, value.factor / 2, value.radicand) if isinstance(value, Surd) else value / 2


def _parts(first: Flow, times: tuple[Any, ...], modified: tuple[Any, ...] = ()) -> tuple[Part, ...]:
    """Alternate drifts and kicks; the entries are arguments of `exact`."""
    other: Flow = "U" if first == "T" else "T"
    extra = modified or (0,) * len(times)
    return tuple(
        Part(other if i % 2 else first, exact(time), exact(v))
        for i, (time, v) in enumerate(zip(times, extra, strict=True))
    )


_0 = Fraction(0)

# begin: written by tools/derive_coefficients.py
DIGITS: dict[str, tuple[str, ...]] = {
    "yoshida4": (
        "1.351207191959657634047687808971460826921999376217144828328706",
        "-1.702414383919315268095375617942921653843998752434289656657412",
    ),
    "suzuki4": ("0.414490771794375737142354062860761495711774604016707133323285",),
    "suzuki6": ("0.373065827733272824775863041073416818504301377080640741655192",),
    "suzuki8": ("0.359584649349992252612417346018966775556380722857589241557954",),
    "yoshida6": (
        "0.784513610477557263819497633866349875776824417451493384567948",
        "0.235573213359358133684793182978534601686468082103401119003493",
        "-1.177679984178871006946415680964315734639269252634598484475369",
        "1.315186320683911218884249728238862514351953506159407961807856",
    ),
    "yoshida8": (
        "0.914844246229791566748793489847509604518119708728858371797260",
        "0.253693336566211354146146020689942076097653164732474096632268",
        "-1.444852236860605157694730657537390354955910101795505602488906",
        "-0.158240635368050175204066776759754247755445115675751568082098",
        "1.938139137622525986579186487443641760953593357447650272072793",
        "-1.960610232975310807607633376399663640792432819826005301910415",
        "0.102799849391796440698115131601225862911015601278442768271702",
        "1.708453070787281584668379362228977878046812410219673927414792",
    ),
    "kahan_li6": (
        "0.392161444007314139279250557422671403804934260757762418963889",
        "0.332599136789359438599748637500049646881586944504159028345083",
        "-0.706246172557639359809964819549256459395510666821868151972970",
        "0.082213596293550800231490448102056331103293891232659497120168",
        "0.798543990934829963398950353048958155211391140654574415087660",
    ),
    "kahan_li8": (
        "0.130202483088890080878817632096700522357247233811539578331337",
        "0.561162981775108384561964407700150567266159354340969145718069",
        "-0.389474962644847286408078598235248388836068046764061897542357",
        "0.158841906555155600896210745707152481412147809432636521492661",
        "-0.395903894133237577336231539347938936026771485432725153360627",
        "0.184539640978315707091832541533375462818987344152961549355570",
        "0.258374387686322047293979109994939471813076208954628128914344",
        "0.295011723609310298870966240218228112976543230346496550494578",
        "-0.605508533830034511698921079334718587562643297684888846807150",
    ),
    "mclachlan8": (
        "0.741670364350612953448227801783806315603536510079860590239932",
        "-0.409100825800031593997300095893563417309917830234813621291562",
        "0.190754710296238379953876256450371662735460539872510275865233",
        "-0.573862471116082266656387726635535742159509054333269408558661",
        "0.299064181303655923844463540688602988225822885294623982746386",
        "0.334624918245298183784957979882182288633691916310461216537442",
        "0.315293092396766596632056663811002430994080864717213863445453",
        "-0.796887939352916354019788840173733053446331663413173797968446",
    ),
    "sofroniou_spaletta10": (
        "0.078795722521686419263907679338378235287765288600653576461428",
        "0.313096103415108527764812471919375119427788455098459432398366",
        "0.027918383235078066109520273264622963164893516664277554441921",
        "-0.229592841593907094151213396801772333759618673008642102834970",
        "0.130962061077164863174656859293939635912993448156896314488263",
        "-0.269733405654510714344609732216317792089150838615139616660129",
        "0.074973343155891435666137105638728799029145423019860964658068",
        "0.111993423999810204889575080737386917384281495352791277098188",
        "0.366133449546226751193148123537947805939005151755979313759307",
        "-0.399105630136035897878629810584101969653898274217491828923015",
        "0.103087398527471077315802769991778382274161710966438327594021",
        "0.411430873955890237820704118977676163371669027646030102746817",
        "-0.004866360583135261762195659307425475870964618781312669902848",
        "-0.392033353708639906448081936430529864761923616383418884331019",
        "0.051942502962449647037182904927337638516894754619048027340794",
        "0.050665090759924496335874342400843519351021330867511872900783",
        "0.049674370639729879054568800394840809770057110434634550614710",
        "0.049317735759594537917680009834582893411758615646847576298630",
    ),
    "blanes_moan4": (
        "0.082984406417404982334898567313178560910285054722887307530914",
        "0.245298957184271123448654456278295661850075631406005208774277",
        "0.396309801498368061853954643707089391211246515983892703624698",
        "0.604872665711079923626184329892519462743148152785130540595152",
        "-0.039056304922348437334305653429234342428239282737433166555125",
        "-0.350171622895351047074838786170815124593223784191135749369429",
        "0.119524194013150786290904884817932780613415424061306310799026",
    ),
    "blanes_moan6": (
        "0.041464998518262836912222269558013767296753504338977863510520",
        "0.123229775946271133871155432893095176934673620216842338695549",
        "0.198128671918066501310543651394244333178451640511287958622411",
        "0.290553797799558284556939650378021304524615738075577892356508",
        "-0.040006192104152702119838140287436957819813232718907197604660",
        "-0.127049212625416987117347402512252087437591816306886035792032",
        "0.075253984301580315786625994047338735391484913126007664452943",
        "-0.246331761062075429934438897308163565427538154506027227691723",
        "-0.011511387420687753914989794956068404678320619592930450400758",
        "0.357208872795927844909905468005110890521986298677366254203241",
        "0.236669924786930802025436020243908526631443794335564161419544",
        "0.204777054291470307427571497088376561767708627686253556456914",
    ),
    "blanes_moan6a": (
        "0.037859319840611013471773495866429726527914354921045078968316",
        "0.091719152624462170850773213534577719974419716123448334965866",
        "0.102635633102436603326174992306584666871509894940559762343678",
        "0.183983170005004878998491646171247470168893290257283726355384",
        "-0.025867888266558348109650889558336821920593591223221097648227",
        "-0.056534365832889169766935144639488227111613362268054486763680",
        "0.314241403071446406545624071951643515116053026364482142209865",
        "0.004914688774711814489438773569408503734301937083617133708303",
        "-0.130144459517415199495536318609932101507329534565846357813750",
        "0.143761127168361838328147624692526201293294577336623681944504",
        "0.106417700369541822245844601758266417250753803902483874691913",
        "0.328567693746803460265115365832632305237227172819451591140768",
        "-0.008794243128510176799256809463746379058629492173621191372385",
        "-0.196411466486454993165031479160903973296523331352369981351145",
        "0.207305069056895757630053711498181953440643075668235577241180",
    ),
    "saba4": (
        "0.069431844202973712388026755553595247452137310185141181192139",
        "0.260577634004598155210640364894782408947574754929401642511384",
        "0.339981043584856264802665759103244687200575869770914352592954",
    ),
    "saba4_corrector": ("-0.003396775048208601331532157783492143797021413250074875041792",),
    "processed4": (
        "-0.152867657479646335543775792272802866487024400438495415658468",
        "0.104111299480555118603407463347378495102884139575568997503005",
        "0.247345065582644857930571855756031056862098307672162239758858",
        "-0.272566920653012572731444992459445038741641412975045161901012",
        "-0.094477408102998522386796063483228190375073907233666824100390",
        "0.168455621172457454128037529112066543638757273399476164398007",
    ),
    "processed6_kernel": (
        "0.237887064748297194565627109910843681482041360445623757045131",
        "0.568261038391863012714531744785326805292058953159886106180930",
        "0.262112935251702805434372890089156318517958639554376242954869",
        "-0.136522076783726025429063489570653610584117906319772212361860",
    ),
    "processed6_modified": ("-0.008200556408039163912356194554004138872967004635763013627258",),
    "processed6_twist": (
        "-0.019026432922978267796444197290978878399347268569541269059532",
        "0.000074132002251395355052095375336052952778115966704714231073",
        "-0.001436008476548443460217840911456529003130705768557912458141",
    ),
    "processed6": (
        "0.168394885024869586897677317169402376172858663836599902369115",
        "0.020705022565298780208520966538274994462744708423616111263206",
        "0.187422885189213548301219678269555587756376154505959336375653",
        "0.106011257908060035434393932603129708785632093971100213923285",
        "-0.144765413954700990924399486376956966613395068702308503080427",
        "-0.322894100068489719089418898117259891053741887816212602355217",
        "-0.151851897157622298890181846621659388689408296386650955079099",
        "0.259916005778923710999868161776756558841024824941277139405292",
        "-0.415381159492092272843357436484446495639858089834033305947991",
        "0.096968790339039740662786387151411305005108427715585142244721",
        "0.159016027580890335228121429280892764956696101139761527628001",
        "-0.330271889608841679586571892034093052899804292950191935665295",
        "0.197164672809442092230920344763212122056730535440671997734748",
        "0.169564913086009131370421342081780376859036125714825931184008",
    ),
}
# end of the written part


def _numbers(name: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(value) for value in DIGITS[name])


def _suzuki(order: int) -> tuple[Fraction, ...]:
    """Compose the method of order - 2 five times, over s, s, 1 - 4 s, s, s."""
    if order == 2:
        return (Fraction(1),)
    inner = _suzuki(order - 2)
    (s,) = _numbers(f"suzuki{order}")
    return tuple(outer * w for outer in (s, s, 1 - 4 * s, s, s) for w in inner)


def _centred(weights: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    return weights[: len(weights) // 2 + 1]


def _all_compositions() -> Iterator[Composition]:
    yield Composition("yoshida4", 4, "yoshida1990", "triple jump: 1/(2 - 2^(1/3))", _numbers("yoshida4"))
    yield Composition("yoshida6", 6, "yoshida1990", "table 1, solution A", _numbers("yoshida6"))
    yield Composition("yoshida8", 8, "yoshida1990", "table 2, solution D", _numbers("yoshida8"))
    for order in (4, 6, 8):
        where = f"recursion: 1/(4 - 4^(1/{order - 1}))"
        yield Composition(f"suzuki{order}", order, "suzuki1990", where, _centred(_suzuki(order)))
    yield Composition("kahan_li6", 6, "kahan1997", "9 stages", _numbers("kahan_li6"))
    yield Composition("kahan_li8", 8, "kahan1997", "17 stages", _numbers("kahan_li8"))
    yield Composition(
        "mclachlan8", 8, "mclachlan1995", "15 stages; also Suzuki and Umeno (1993)", _numbers("mclachlan8")
    )
    where = "35 stages"
    yield Composition("sofroniou_spaletta10", 10, "sofroniou2005", where, _numbers("sofroniou_spaletta10"))


compositions: dict[str, Composition] = {scheme.name: scheme for scheme in _all_compositions()}
"""Compositions of a symmetric method, by name."""


def _nystrom() -> Iterator[Splitting]:
    tables: tuple[tuple[str, int, Flow, str], ...] = (
        ("blanes_moan4", 4, "U", "SRKN_6^b, 6 stages"),
        ("blanes_moan6", 6, "U", "SRKN_11^b, 11 stages"),
        ("blanes_moan6a", 6, "T", "SRKN_14^a, 14 stages"),
    )
    for name, order, first, where in tables:
        yield Splitting(name, "rkn", order, "blanes2002", where, _parts(first, DIGITS[name]))
    half = _parts("U", ("1/6", "1/2", "2/3"), (0, 0, "-1/72"))
    yield Splitting("nystrom4", "modified", 4, "chin1997", "scheme A", half)


def _gauss_lobatto() -> Iterator[Splitting]:
    """Kicks and drifts from the nodes of Gauss (SABA_n, n kicks) and Lobatto (SBAB_n, n drifts) on (0, 1).

    Also in McLachlan (1995, BIT 35); the correctors are those of Laskar and Robutel with the sign of V used here.
    """
    outer, step, centre = DIGITS["saba4"]
    root5, root21 = surd("1/2", "-1/10", 5), surd("1/2", "-1/14", 21)
    tables: tuple[tuple[str, Flow, int, tuple[Any, ...], Any], ...] = (
        ("saba1", "T", 1, ("1/2", 1), "-1/12"),
        ("saba2", "T", 2, (surd("1/2", "-1/6", 3), "1/2", surd("0", "1/3", 3)), surd("-1/12", "1/24", 3)),
        ("saba3", "T", 3, (surd("1/2", "-1/10", 15), "5/18", surd("0", "1/10", 15), "4/9"),
         surd("-1/12", "13/648", 15)),
        ("saba4", "T", 4, (outer, surd("1/4", "-1/72", 30), step, surd("1/4", "1/72", 30), centre),
         DIGITS["saba4_corrector"][0]),
        ("sbab1", "U", 1, ("1/2", 1), "1/24"),
        ("sbab2", "U", 2, ("1/6", "1/2", "2/3"), "-1/72"),
        ("sbab3", "U", 3, ("1/12", root5, "5/12", surd("0", "1/5", 5)), surd("-13/288", "5/288", 5)),
        ("sbab4", "U", 4, ("1/20", root21, "49/180", surd("0", "1/14", 21), "16/45"),
         surd("-3861/64800", "791/64800", 21)),
    )  # fmt: skip
    for name, first, n, times, corrector in tables:
        where = f"{name.upper()[:4]}_{n}"
        half = _parts(first, times)
        yield Splitting(name, "near-integrable", 2, "laskar2001", where, half, (2 * n, 2), exact(corrector))


splittings: dict[str, Splitting] = {scheme.name: scheme for scheme in (*_nystrom(), *_gauss_lobatto())}
"""Symmetric splittings into kicks and drifts, by name."""

splittings |= {f"{name}c": corrected(scheme) for name, scheme in splittings.items() if scheme.generalised}


def _all_processed() -> Iterator[Processed]:
    half = _parts("T", ("1/2", 1), (0, "-1/24"))
    kernel = Splitting("rowlands", "modified", 2, "rowlands1991", "order 4 up to a change of variables", half)
    post = _parts("U", DIGITS["processed4"])
    where = "kernel of Rowlands; processor derived here"
    yield Processed("processed4", 4, "blanes2001", where, kernel, post, (Fraction(1, 24), _0, _0))
    half = _parts("U", DIGITS["processed6_kernel"], (*DIGITS["processed6_modified"], 0, 0, 0))
    where = "the construction; kernel and processor derived here"
    kernel = Splitting("kernel6", "modified", 2, "blanes2001", "order 6 up to a change of variables", half)
    x1, x2, x3 = _numbers("processed6_twist")
    yield Processed("processed6", 6, "blanes2001", where, kernel, _parts("U", DIGITS["processed6"]), (x1, x2, x3))


processed: dict[str, Processed] = {scheme.name: scheme for scheme in _all_processed()}
"""Processed methods, by name."""
