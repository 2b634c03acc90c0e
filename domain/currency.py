"""Currencies by ISO 4217, with the digits of their smallest coin."""

from decimal import Decimal

_TWO = """
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF
CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL
HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT
MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB
SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH
USD UYU UZS VED VES WST XCD YER ZAR ZMW ZWG
"""
_NONE = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_THREE = "BHD IQD JOD KWD LYD OMR TND"

DIGITS: dict[str, int] = {
    code: digits for codes, digits in ((_TWO, 2), (_NONE, 0), (_THREE, 3)) for code in codes.split()
}
"""For each currency in use, how many decimals an invoice in it has."""


def smallest(currency: str) -> Decimal:
    """The smallest amount that can be paid. Raises `KeyError` for what is no currency."""
    return Decimal(1).scaleb(-DIGITS[currency])
